# Runs the portfile without vcpkg, by stand-ins that do what vcpkg's documentation says of these
# functions, as far as this port uses them:
#   cmake -DPORT_DIR=... -DWORK=... -DCXX=... -DHELPERS="vcpkg-cmake;..." -P stubs.cmake
# Each function comes from a helper port, which vcpkg.json must name.
cmake_policy(VERSION 3.14)
set(CURRENT_PORT_DIR "${PORT_DIR}")
set(CURRENT_PACKAGES_DIR "${WORK}/packages")
set(FEATURES core)

macro(needs_helper helper)
  if(NOT "${helper}" IN_LIST HELPERS)
    message(FATAL_ERROR "vcpkg.json does not name the helper port ${helper}")
  endif()
endmacro()

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${text}")
  endif()
endfunction()

function(vcpkg_check_features)
  cmake_parse_arguments(arg "" "OUT_FEATURE_OPTIONS" "FEATURES" ${ARGN})
  set(options)
  while(arg_FEATURES)
    list(POP_FRONT arg_FEATURES feature variable)
    if(feature IN_LIST FEATURES)
      list(APPEND options "-D${variable}=ON")
    else()
      list(APPEND options "-D${variable}=OFF")
    endif()
  endwhile()
  set(${arg_OUT_FEATURE_OPTIONS} "${options}" PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  needs_helper(vcpkg-cmake)
  cmake_parse_arguments(arg "" "SOURCE_PATH" "OPTIONS" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "vcpkg_cmake_configure: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  run("${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${WORK}/build" "-DCMAKE_CXX_COMPILER=${CXX}"
      -DCMAKE_BUILD_TYPE=Release "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}" ${arg_OPTIONS})
endfunction()

function(vcpkg_cmake_install)
  needs_helper(vcpkg-cmake)
  run("${CMAKE_COMMAND}" --build "${WORK}/build" --target install)
endfunction()

# The files move to share/NAME, one folder up, and find their prefix from there.
function(vcpkg_cmake_config_fixup)
  needs_helper(vcpkg-cmake-config)
  cmake_parse_arguments(arg "" "PACKAGE_NAME;CONFIG_PATH" "" ${ARGN})
  set(to "${CURRENT_PACKAGES_DIR}/share/${arg_PACKAGE_NAME}")
  file(RENAME "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}" "${to}")
  file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/cmake")
  file(READ "${to}/codeexec-targets.cmake" text)
  string(REPLACE "\"\${CMAKE_CURRENT_LIST_FILE}\" PATH)"
                 "\"\${CMAKE_CURRENT_LIST_FILE}\" ABSOLUTE)" text "${text}")
  file(WRITE "${to}/codeexec-targets.cmake" "${text}")
endfunction()

function(vcpkg_fixup_pkgconfig)
  if(NOT EXISTS "${CURRENT_PACKAGES_DIR}/share/pkgconfig/codeexec.pc")
    message(FATAL_ERROR "there is no share/pkgconfig/codeexec.pc")
  endif()
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(arg "" "" "FILE_LIST" ${ARGN})
  configure_file("${arg_FILE_LIST}" "${CURRENT_PACKAGES_DIR}/share/codeexec/copyright" COPYONLY)
endfunction()

include("${PORT_DIR}/portfile.cmake")

# What vcpkg's own checks after a build look at.
foreach(file include/codeexec.hpp share/codeexec/codeexec-config.cmake share/codeexec/copyright)
  if(NOT EXISTS "${CURRENT_PACKAGES_DIR}/${file}")
    message(FATAL_ERROR "the port installs no ${file}")
  endif()
endforeach()
foreach(file bin lib share/cmake share/licenses debug)
  if(EXISTS "${CURRENT_PACKAGES_DIR}/${file}")
    message(FATAL_ERROR "the port leaves ${file}")
  endif()
endforeach()
