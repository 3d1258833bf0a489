// The frame of the page of --report, which its script fills.

#include "report/packed_internal.hpp"
#include "report/report_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr char body_text[] = R"html(<meta name="viewport" content="width=device-width">
<title>Command report</title>
</head>
<body>
<header>
<h1>Command report</h1>
<p id="span"></p>
<p id="chain"></p>
</header>
<noscript><p>This page shows its records by a script, which is switched off here.</p></noscript>
<main>
<section id="findings" aria-label="Findings" hidden><h2>Lines that need a look</h2></section>
<div id="totals" role="group" aria-label="Totals"></div>
<section aria-labelledby="when">
<div class="head">
<h2 id="when">Timeline</h2>
<span class="soft"><span class="key ok">succeeded</span> &nbsp;
<span class="key failed">failed</span> &nbsp;
<span class="key stopped">stopped</span> &nbsp;
<span class="key refused">refused</span></span>
<span class="tools">
<button id="earlier" aria-label="Earlier">&#9664;</button>
<button id="later" aria-label="Later">&#9654;</button>
<button id="in" aria-label="Zoom in">+</button>
<button id="out" aria-label="Zoom out">&minus;</button>
<button id="whole">Whole time</button>
</span>
</div>
<div id="lanes"></div>
<div id="axis" aria-hidden="true"><span></span><div id="ticks"></div></div>
</section>
<div id="plots"></div>
<section id="commands" aria-labelledby="which">
<div class="head"><h2 id="which">Commands</h2><span id="count" role="status"></span></div>
<div id="filters" role="search">
<input id="text" type="search" placeholder="Search commands and output" aria-label="Search">
<select id="who" aria-label="Agent"></select>
<select id="kind" aria-label="Outcome"></select>
<select id="rule" aria-label="Rule"></select>
<button id="reset">Show all</button>
</div>
<p class="keys"><small>Keys: / to search, arrows up and down to move, Enter to open, arrows left
and right for pages.</small></p>
<ol id="list"></ol>
<nav aria-label="Pages">
<button id="before">Previous</button><span id="page"></span><button id="after">Next</button>
</nav>
</section>
</main>
<footer><p id="made"></p></footer>)html";

constexpr auto packed_body = pack<pack_text(body_text, sizeof body_text - 1, nullptr)>(body_text);

}  // namespace

inline namespace inner {

std::string page_body() { return packed_body.text(); }

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
