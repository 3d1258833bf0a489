// The style of the page of --report: light and dark, narrow and wide, on paper.

#include "report/packed_internal.hpp"
#include "report/report_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr char style_text[] = R"css(
:root {
  color-scheme: light dark;
  --page: light-dark(#f6f7f9, #13161a);
  --card: light-dark(#fff, #1b1f25);
  --text: light-dark(#1c2127, #e3e7ec);
  --soft: light-dark(#58616d, #9ba6b3);
  --line: light-dark(#dde2e8, #2f363f);
  --hint: light-dark(#eef1f5, #262c34);
  --link: light-dark(#1f5fbf, #7fb2ff);
  --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace;
}
.ok { --tone: light-dark(#17774a, #4cc38a) }
.failed { --tone: light-dark(#a65200, #f0a64a) }
.stopped { --tone: light-dark(#7440ab, #bf97f0) }
.refused { --tone: light-dark(#c22a2a, #ff7b72) }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 84rem; padding: 1.5rem clamp(.75rem, 3vw, 2.5rem) 3rem;
  background: var(--page); color: var(--text);
  font: 15px/1.45 system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif }
h1 { margin: 0; font-size: 1.6rem; letter-spacing: -.01em }
h2 { margin: 0; font-size: 1rem }
p { margin: .2rem 0 0 }
p, small, footer, .soft { color: var(--soft) }
section { margin-top: 1rem; padding: 1rem; background: var(--card);
  border: 1px solid var(--line); border-radius: .6rem }
button, input, select { font: inherit; color: inherit; background: var(--card);
  border: 1px solid var(--line); border-radius: .4rem; padding: .3rem .6rem; min-width: 0 }
button { cursor: pointer }
button:hover { background: var(--hint) }
button[aria-pressed=true] { border-color: var(--link); box-shadow: 0 0 0 1px var(--link) }
:disabled { opacity: .45; cursor: default }
:focus-visible { outline: 2px solid var(--link); outline-offset: 1px }
pre, code { font-family: var(--mono); font-size: .86rem; unicode-bidi: isolate }
pre { margin: .3rem 0 .8rem; padding: .6rem .8rem; background: var(--hint); border-radius: .4rem;
  white-space: pre-wrap; overflow-wrap: anywhere; max-height: 30rem; overflow: auto }
mark { background: none; color: inherit; font-weight: 700;
  text-decoration: underline wavy light-dark(#c22a2a, #ff7b72) }
.odd { padding: 0 .25em; border-radius: .25em; font-size: .8em; background: #b3005e; color: #fff }
.head { display: flex; flex-wrap: wrap; gap: .4rem 1rem; align-items: center;
  margin-bottom: .7rem }
.head > :last-child { margin-left: auto }
.key { color: var(--tone) }
.key::before { content: ''; display: inline-block; width: .7em; height: .7em;
  margin-right: .35em; border-radius: 2px; background: currentColor }
#findings { border-left: .3rem solid #c77c11 }
#totals { display: grid; gap: .6rem; margin: 1rem 0 0;
  grid-template-columns: repeat(auto-fit, minmax(7.7rem, 1fr)) }
#totals > * { display: block; text-align: left; color: var(--soft); background: var(--card);
  border: 1px solid var(--line); border-radius: .6rem; padding: .6rem .8rem }
#totals b { display: block; font-size: 1.3rem; white-space: nowrap; color: var(--tone, var(--text));
  font-variant-numeric: tabular-nums }
.lane, #axis { display: grid; grid-template-columns: 11rem 1fr; gap: .7rem; align-items: center }
.lane { margin-bottom: .3rem }
.lane button { display: flex; justify-content: space-between; gap: .5rem; padding: .2rem .5rem }
.lane button span, summary code { overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
canvas { display: block; width: 100%; height: 32px; background: var(--hint); border-radius: .3rem;
  cursor: crosshair; touch-action: pan-y }
#ticks { position: relative; height: 1.3rem; font-size: .8rem; color: var(--soft) }
#ticks span { position: absolute; transform: translateX(-50%); white-space: nowrap }
#plots { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(14.5rem, 1fr)) }
#plots { margin-top: 1rem }
#plots section { margin: 0 }
.plot { display: grid; grid-template-columns: minmax(0, 1fr) auto; width: 100%; margin-top: .35rem;
  padding: .15rem .4rem; gap: 0 .8rem; text-align: left; border: 1px solid transparent;
  border-radius: .4rem; font-variant-numeric: tabular-nums }
.plot span:first-child { overflow-wrap: anywhere; font-size: .9rem }
.plot i { grid-column: 1 / -1; height: .3rem; border-radius: 2px;
  background: var(--tone, var(--link)) }
#filters { display: flex; flex-wrap: wrap; gap: .5rem }
#filters > * { flex: 1 1 9rem }
#filters input { flex: 3 1 16rem }
#filters button { flex: 0 0 auto }
#list { list-style: none; margin: .8rem 0; padding: 0 }
#list li { border-top: 1px solid var(--line) }
summary { display: grid; gap: .2rem .8rem; padding: .4rem .3rem; align-items: baseline;
  grid-template-columns: 10.5rem 9rem 5.6rem minmax(0, 1fr) 5.5rem; cursor: pointer;
  list-style: none; font-variant-numeric: tabular-nums }
summary::-webkit-details-marker { display: none }
summary:hover, details[open] > summary { background: var(--hint) }
summary > :nth-child(2) { overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
summary > :last-child { text-align: right }
.badge { color: var(--tone); border: 1px solid; border-radius: 1rem; padding: 0 .5rem;
  font-size: .82rem; font-weight: 600; text-align: center; white-space: nowrap }
.detail { padding: .6rem .3rem 1rem 1.2rem }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .15rem 1rem;
  margin: 0; font-size: .9rem }
dt { color: var(--soft) }
dd { margin: 0; overflow-wrap: anywhere; unicode-bidi: isolate }
nav { display: flex; gap: .5rem; align-items: center; justify-content: center }
[hidden] { display: none !important }
@media (max-width: 48rem) {
  summary { grid-template-columns: auto 1fr auto }
  summary code { grid-column: 1 / -1; grid-row: 2; white-space: normal; display: -webkit-box;
    -webkit-line-clamp: 2; -webkit-box-orient: vertical; overflow-wrap: anywhere }
  summary > :nth-child(2) { grid-column: 1 / -1; grid-row: 3; color: var(--soft) }
  .lane, #axis { grid-template-columns: 1fr; gap: .2rem }
  #axis > :first-child { display: none }
}
@media print {
  :root { color-scheme: light; --page: #fff; font-size: 10.5px }
  body { max-width: none; padding: 0; font-size: 1rem }
  #filters, nav, .tools, .keys { display: none }
  section, #totals > * { break-inside: avoid; padding: .5rem }
  #commands { break-inside: auto; border: 0; padding: 0 }
  summary { grid-template-columns: 11rem 9rem 6rem minmax(0, 1fr) 5rem }
  summary code { white-space: pre-wrap; overflow-wrap: anywhere }
  canvas, .plot i, .key::before { print-color-adjust: exact; -webkit-print-color-adjust: exact }
  pre { max-height: none }
}
)css";

constexpr auto packed_style =
    pack<pack_text(style_text, sizeof style_text - 1, nullptr)>(style_text);

}  // namespace

inline namespace inner {

std::string page_style() { return packed_style.text(); }

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
