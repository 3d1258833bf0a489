// QProcess of Qt.
#include <QCoreApplication>
#include <QProcess>

#include <memory>

#include "driver.hpp"

void run() { check(QProcess::execute("/bin/true", {}) == 0); }

std::string capture() {
  QProcess process;
  process.start("/bin/echo", {"hello"});
  check(process.waitForFinished(-1));
  return process.readAllStandardOutput().toStdString();
}

void many() {
  std::vector<std::unique_ptr<QProcess>> all;
  for (int i = 0; i < at_once; ++i) {
    all.push_back(std::make_unique<QProcess>());
    all.back()->start("/bin/true", QStringList());
  }
  for (const auto& one : all)
    check((one->state() == QProcess::NotRunning || one->waitForFinished(-1)) &&
          one->exitCode() == 0);
}

int main(int argc, char** argv) {
  QCoreApplication application(argc, argv);
  return drive();
}
