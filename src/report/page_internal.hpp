// The page of --report. `python3 src/join.py` makes this part from page.html, page.css and page.js.
#pragma once

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Up to the records, one a line.
inline constexpr std::string_view page_begin = R"page(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; script-src 'sha256-e46x17Rj3psKNYgvzMO6wSENkbyJAQybpwpey4QLK/o=';
  style-src 'sha256-1NjGLK6//UJ5PvSrugTiwdAdo0x1OyK284cKauq17hc=';
  base-uri 'none'; form-action 'none';
  require-trusted-types-for 'script'; trusted-types 'none'">
<style>:root {
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
</style>
<meta name="viewport" content="width=device-width">
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
<footer><p id="made"></p></footer>
<script type="application/json" id="records">
)page";

// Between the records and the summary.
inline constexpr std::string_view page_middle = R"page(</script>
<script type="application/json" id="summary">
)page";

// Behind the summary.
inline constexpr std::string_view page_end = R"page(</script>
<script>'use strict';
const $ = (id) => document.getElementById(id);
const kept = ['host', 'pid', 'agent_id', 'client', 'session_id', 'tool', 'work_dir', 'container',
'place', 'sandbox'];
const kinds = {ok: 'succeeded', failed: 'failed', stopped: 'stopped', refused: 'refused'};
const pageSize = 100, printSize = 1000, mostLanes = 12, mostBars = 8;
const odd = new RegExp('[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c' +
'\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f' +
'\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\u{e0000}-\\u{e0fff}]', 'gu');
const codeOf = (c) => 'U+' + c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');
const plain = (value) => textOf(value).replace(odd, codeOf);
const textOf = (value) => typeof value === 'string' ? value
: value === undefined || value === null ? '' : JSON.stringify(value);
function visible(value) {
const text = textOf(value), nodes = [];
let at = 0;
for (const found of text.matchAll(odd)) {
nodes.push(text.slice(at, found.index), make('span', {class: 'odd'}, codeOf(found[0])));
at = found.index + found[0].length;
}
return [...nodes, text.slice(at)];
}
function make(tag, attributes, ...kids) {
const node = document.createElement(tag);
for (const name in attributes) node.setAttribute(name, attributes[name]);
node.append(...kids);
return node;
}
const count = (n) => n.toLocaleString('en');
const two = (n) => (n < 10 ? n.toFixed(2) : n < 100 ? n.toFixed(1) : Math.round(n)) + '';
const span = (ms) => ms < 1000 ? Math.round(ms) + ' ms' : ms < 6e4 ? two(ms / 1e3) + ' s'
: ms < 36e5 ? two(ms / 6e4) + ' min' : two(ms / 36e5) + ' h';
const bytes = (n) => n < 1e3 ? n + ' B' : n < 1e6 ? two(n / 1e3) + ' kB'
: n < 1e9 ? two(n / 1e6) + ' MB' : two(n / 1e9) + ' GB';
const stamp = (at, from = 0, to = 19) => new Date(at).toISOString().slice(from, to)
.replace('T', ' ');
const number = (value) => Number.isFinite(value) ? value : 0;
const list = (value) => Array.isArray(value) ? value : [];
function kindOf(r) {
if (r.outcome === 'refused') return 'refused';
if (r.outcome !== 'exited') return 'stopped';
return r.exit_code === 0 ? 'ok' : 'failed';
}
function verdict(r) {
if (r.outcome === 'exited') return r.exit_code === 0 ? 'ok' : 'exit ' + textOf(r.exit_code);
return r.outcome === 'signaled' ? 'signal ' + textOf(r.signal) : r.outcome.replace('_', ' ');
}
function programOf(r) {
const word = /^\s*(?:\w+=\S*\s+)*([^\s;|&<>()]+)/.exec(textOf(r.command));
return word ? word[1].replace(/^.*\/(?=.)/, '').slice(0, 60) : '';
}
function peer(c) {
if (typeof c !== 'object' || !c) return textOf(c);
if (c.omitted) return `${textOf(c.omitted)} more that are not in the log`;
if (c.name === undefined) return textOf(c);
return textOf(c.name) + (c.port ? ':' + textOf(c.port) : '') +
(c.verdict && c.verdict !== 'allowed' ? ` (${textOf(c.verdict)})` : '');
}
let last = {}, time = 0;
const items = $('records').textContent.split('\n').filter(Boolean).map((line) => {
const r = {...last, ...JSON.parse(line)};
last = {};
for (const name of kept) last[name] = r[name];
const told = Date.parse(r.time);
if (told >= 0 && told < 2e14) time = told;
return {r, at: time, ms: Math.max(number(r.duration_ms), 0), kind: kindOf(r),
who: textOf(r.agent_id) || textOf(r.client) || `${textOf(r.host)} ${textOf(r.pid)}`};
}).sort((a, b) => a.at - b.at);
const summary = JSON.parse($('summary').textContent);
let begin = items.length ? items[0].at : 0, end = begin + 1000;
for (const item of items) end = Math.max(end, item.at + Math.min(item.ms, 864e5));
const state = {text: '', who: '', kind: '', rule: '', from: begin, to: end, page: 0};
let shown = [], printing = false;
function tally(from, keys, amount = () => 1) {
const sums = new Map();
for (const item of from)
for (const key of keys(item)) if (key) sums.set(key, (sums.get(key) || 0) + amount(item));
return [...sums].sort((a, b) => b[1] - a[1]);
}
const agents = tally(items, (i) => [i.who]);
const rules = tally(items, (i) => [textOf(i.r.rule)]);
const laneOf = new Map(agents.map(([who], i) => [who, Math.min(i, mostLanes - 1)]));
const isZoomed = () => state.from > begin || state.to < end;
function filtered() {
const wanted = state.text.toLowerCase();
return items.filter((i) => (!state.who || i.who === state.who) &&
(!state.kind || i.kind === state.kind) && (!state.rule || textOf(i.r.rule) === state.rule) &&
i.at + i.ms >= state.from && i.at <= state.to &&
(!wanted || (i.text ??= [i.r.command, i.r.code, i.r.input, i.r.message, i.r.stdout,
i.r.stderr, i.r.work_dir, i.r.connections, i.r.changed_files].map(textOf).join('\n')
.toLowerCase())
.includes(wanted)));
}
const lanes = agents.slice(0, mostLanes).map(([who, n], i) => {
const isRest = i === mostLanes - 1 && agents.length > mostLanes;
const name = isRest ? `${count(agents.length - i)} more agents` : who;
const button = make('button', {title: plain(name)}, make('span', {}, ...visible(name)),
make('small', {}, isRest ? '' : count(n)));
const canvas = make('canvas', {role: 'img', 'aria-label': `Timeline of ${plain(name)}`});
button.disabled = isRest;
button.onclick = () => set({who: state.who === who ? '' : who});
canvas.onpointerdown = (e) => { canvas.start = e; canvas.setPointerCapture(e.pointerId); };
canvas.onpointermove = (e) => {
const near = nearest(i, timeAt(canvas, e));
canvas.title = near ? stamp(near.at, 11) + ' ' + plain(near.r.command).slice(0, 200) : '';
};
canvas.onpointerup = (e) => {
const a = timeAt(canvas, canvas.start || e), b = timeAt(canvas, e);
if (Math.abs(e.offsetX - (canvas.start || e).offsetX) > 4)
return set({from: Math.min(a, b), to: Math.max(a, b, Math.min(a, b) + 10)});
if (nearest(i, b)) jump(nearest(i, b));
};
const lane = make('div', {class: 'lane'}, button, canvas);
$('lanes').append(lane);
return {who, button, canvas, isRest};
});
const timeAt = (canvas, e) =>
state.from + (state.to - state.from) * Math.min(Math.max(e.offsetX / canvas.clientWidth, 0), 1);
function nearest(lane, at) {
let best = null, distance = Infinity;
for (const i of shown) {
const d = at < i.at ? i.at - at : Math.max(at - i.at - i.ms, 0);
if (laneOf.get(i.who) === lane && d <= distance) { best = i; distance = d; }
}
return best;
}
const steps = [0.01, 0.1, 1, 5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800,
86400, 172800, 604800, 2592000, 31536000, 3153600000].map((s) => s * 1000);
function drawLanes() {
const length = state.to - state.from, width = $('ticks').clientWidth || 600;
const step = steps.find((s) => length / s <= width / 110) || length;
const ticks = [];
for (let t = Math.ceil(state.from / step) * step; t <= state.to; t += step) ticks.push(t);
const format = step < 1000 ? [11, 23] : step < 6e4 ? [11, 19] : step < 864e5 ? [11, 16] : [0, 10];
$('ticks').replaceChildren(...ticks.map((t) => {
const label = make('span', {}, stamp(t, ...format));
label.style.left = 100 * (t - state.from) / length + '%';
return label;
}));
const colours = {};
for (const kind in kinds)
colours[kind] = getComputedStyle(document.querySelector('.key.' + kind)).color;
const line = getComputedStyle($('list')).getPropertyValue('color');
const pens = lanes.map(({canvas, button, who}) => {
const scale = devicePixelRatio || 1;
canvas.width = canvas.clientWidth * scale;
canvas.height = canvas.clientHeight * scale;
const pen = canvas.getContext('2d');
pen.scale(scale, scale);
pen.globalAlpha = 0.12;
pen.fillStyle = line;
for (const t of ticks)
pen.fillRect((t - state.from) / length * canvas.clientWidth, 0, 1, 99);
pen.globalAlpha = 0.85;
button.setAttribute('aria-pressed', state.who === who);
return pen;
});
for (const kind of ['ok', 'failed', 'stopped', 'refused'])
for (const i of shown) {
if (i.kind !== kind) continue;
const lane = laneOf.get(i.who), w = lanes[lane].canvas.clientWidth;
const left = (i.at - state.from) / length * w;
pens[lane].fillStyle = colours[kind];
if (kind === 'refused') pens[lane].fillRect(left - 1, 2, 3, 28);
else pens[lane].fillRect(left, 8, Math.max(i.ms / length * w, 2), 16);
}
}
function drawTotals() {
const sum = (name) => shown.reduce((total, i) => total + number(i.r[name]), 0);
const tiles = [make('div', {}, make('b', {}, count(shown.length)), 'commands')];
const kindCounts = new Map(tally(shown, (i) => [i.kind]));
for (const kind in kinds) {
const tile = make('button', {class: kind, 'aria-pressed': state.kind === kind},
make('b', {}, count(kindCounts.get(kind) || 0)), kinds[kind]);
tile.onclick = () => set({kind: state.kind === kind ? '' : kind});
tiles.push(tile);
}
const memory = shown.reduce((most, i) => Math.max(most, number(i.r.peak_memory)), 0);
for (const [value, label] of [[span(sum('duration_ms')), 'running time'],
[span(sum('cpu_ms')), 'processor time'], [memory ? bytes(memory) : '', 'most memory'],
[bytes(sum('stdout_bytes') + sum('stderr_bytes')), 'output']])
if (value) tiles.push(make('div', {}, make('b', {}, value), label));
$('totals').replaceChildren(...tiles);
}
function bars(title, rows, unit, choose, tone = '') {
if (!rows.length) return [];
const most = Math.max(...rows.slice(0, mostBars).map((row) => row[1])) || 1;
const lines = rows.slice(0, mostBars).map(([key, n]) => {
const bar = make('i', {});
bar.style.width = Math.max(100 * n / most, n ? 1 : 0) + '%';
const kids = [make('span', {}, ...visible(key)), make('span', {class: 'soft'}, unit(n)), bar];
if (!choose) return make('div', {class: 'plot ' + tone}, ...kids);
const line = make('button', {class: 'plot ' + tone}, ...kids);
line.onclick = () => choose(key);
return line;
});
if (rows.length > mostBars)
lines.push(make('small', {}, `and ${count(rows.length - mostBars)} more`));
return [make('section', {'aria-label': title}, make('h2', {}, title), ...lines)];
}
function drawPlots() {
const limits = [[10, 'under 10 ms'], [100, 'under 0.1 s'], [1e3, 'under 1 s'],
[1e4, 'under 10 s'], [6e4, 'under 1 min'], [Infinity, '1 min and more']];
const ran = shown.filter((i) => i.kind !== 'refused');
const times = limits.map(([, label]) => [label, 0]);
for (const i of ran) ++times[limits.findIndex(([most]) => i.ms < most)][1];
const search = (text) => set({text});
$('plots').replaceChildren(
...bars('Refused, by rule', tally(shown, (i) => [textOf(i.r.rule)]), count,
(rule) => set({rule: state.rule === rule ? '' : rule}), 'refused'),
...bars('Running time, by program', tally(ran, (i) => [programOf(i.r)], (i) => i.ms), span,
search),
...bars('How long they took', ran.length ? times : [], count),
...bars('Connections', tally(shown, (i) => list(i.r.connections).map(peer)), count),
...bars('Files changed', tally(shown, (i) => list(i.r.changed_files).map(textOf)), count,
search));
}
const shapes = {__proto__: null, time: null, command: null, code: null, input: null,
message: null, stdout: null, stderr: null, rule_begin: null, rule_end: null, cut: null,
connections: null, changed_files: null, duration_ms: span, cpu_ms: span, peak_memory: bytes,
stdout_bytes: bytes, stderr_bytes: bytes, command_bytes: bytes, code_bytes: bytes,
input_bytes: bytes};
const block = (title, ...kids) => [make('small', {}, title), make('pre', {tabindex: 0}, ...kids)];
function commandOf(r) {
const raw = new TextEncoder().encode(textOf(r.command)), a = r.rule_begin, b = r.rule_end;
if (r.cut || !(a >= 0 && a < b && b <= raw.length)) return visible(r.command);
const part = (...range) => visible(new TextDecoder().decode(raw.slice(...range)));
return [...part(0, a), make('mark', {}, ...part(a, b)), ...part(b)];
}
function detail({r}) {
const facts = make('dl', {});
const fact = (name, value) => facts.append(make('dt', {}, ...visible(name)),
make('dd', {}, ...visible(value)));
fact('time', r.time);
for (const name in r) {
const shape = shapes[name];
if (shape === null || !textOf(r[name])) continue;
fact(name.replace(/_ms$/, '').replaceAll('_', ' '),
shape && Number.isFinite(r[name]) ? shape(r[name]) : r[name]);
}
for (const c of list(r.connections)) fact('connection', peer(c) +
(typeof c === 'object' ? '  ' + textOf(c) : ''));
for (const path of list(r.changed_files)) fact('changed file', path);
const more = ['message', 'code', 'input', 'stdout', 'stderr'].filter((name) => textOf(r[name]))
.flatMap((name) => block(name, ...visible(r[name])));
if (r.cut) more.push(make('p', {}, 'Some of this is cut here; the audit log may have more.'));
return make('div', {class: 'detail'}, ...block('command', ...commandOf(r)), ...more, facts);
}
function row(item) {
const line = textOf(item.r.command).slice(0, 300).replace(/\n/g, ' \u23ce ');
const node = make('details', {}, make('summary', {},
make('time', {class: 'soft'}, stamp(item.at)),
make('span', {title: plain(item.who)}, ...visible(item.who)),
make('span', {class: 'badge ' + item.kind, title: plain(item.r.rule)},
...visible(verdict(item.r))),
make('code', {}, ...visible(line)),
make('span', {class: 'soft'}, item.kind === 'refused' ? '' : span(item.ms))));
node.ontoggle = () => { if (!node.children[1]) node.append(detail(item)); };
return make('li', {}, node);
}
function drawList() {
const size = printing ? printSize : pageSize;
const pages = Math.max(Math.ceil(shown.length / size), 1);
state.page = Math.min(Math.max(state.page, 0), pages - 1);
const start = state.page * size;
$('list').replaceChildren(...shown.slice(start, start + size).map(row));
$('page').textContent = `${count(state.page + 1)} of ${count(pages)}`;
$('before').disabled = state.page === 0;
$('after').disabled = state.page === pages - 1;
$('count').textContent = (shown.length === items.length ? count(items.length)
: `${count(shown.length)} of ${count(items.length)}`) +
(printing && pages > 1 ? `, of which ${count(size)} are printed` : '');
}
function jump(item) {
state.page = Math.floor(shown.indexOf(item) / pageSize);
drawList();
const node = $('list').children[shown.indexOf(item) % pageSize].firstChild;
node.open = true;
node.firstChild.focus();
node.scrollIntoView({block: 'center'});
}
function show() {
shown = filtered();
drawTotals();
drawLanes();
drawPlots();
drawList();
for (const name of ['text', 'who', 'kind', 'rule'])
if ($(name).value !== state[name]) $(name).value = state[name];
$('whole').disabled = $('out').disabled = !isZoomed();
}
function set(change) {
Object.assign(state, {page: 0}, change);
const length = Math.min(state.to - state.from, end - begin);
state.from = Math.min(Math.max(state.from, begin), end - length);
state.to = state.from + length;
show();
}
function move(by, zoom = 1) {
const length = state.to - state.from, rest = length * (1 - zoom) / 2;
set({from: state.from + by * length + rest, to: state.to + by * length - rest});
}
function choices(id, all, entries) {
$(id).append(make('option', {value: ''}, all),
...entries.map(([key, label]) => make('option', {value: key}, plain(label))));
$(id).onchange = () => set({[id]: $(id).value});
}
choices('who', 'All agents', agents.map(([who, n]) => [who, `${who} (${count(n)})`]));
choices('kind', 'All outcomes', Object.entries(kinds));
choices('rule', 'All rules', rules.map(([rule, n]) => [rule, `${rule} (${count(n)})`]));
$('rule').hidden = !rules.length;
$('text').oninput = () => set({text: $('text').value});
$('reset').onclick = () =>
set({text: '', who: '', kind: '', rule: '', from: begin, to: end});
$('whole').onclick = () => set({from: begin, to: end});
$('earlier').onclick = () => move(-0.5);
$('later').onclick = () => move(0.5);
$('in').onclick = () => move(0, 0.5);
$('out').onclick = () => move(0, 2);
function turn(by) {
state.page += by;
drawList();
}
$('before').onclick = () => turn(-1);
$('after').onclick = () => turn(1);
addEventListener('keydown', (e) => {
if (e.ctrlKey || e.metaKey || e.altKey) return;
const isText = /INPUT|SELECT/.test(e.target.tagName);
if (e.key === '/' && !isText) $('text').focus();
else if (e.key === 'Escape' && e.target === $('text')) set({text: ''});
else if (isText || !/^(Arrow|Home|End)/.test(e.key)) return;
else {
const rows = [...document.querySelectorAll('summary')], at = rows.indexOf(e.target);
if (at < 0 && e.key !== 'ArrowDown') return;
if (at < 0 && e.target !== document.body) return;
const by = {ArrowDown: 1, ArrowUp: -1, Home: -at, End: rows.length - 1 - at}[e.key];
if (by === undefined) turn(e.key === 'ArrowRight' ? 1 : -1);
const row = document.querySelectorAll('summary')[by === undefined ? 0 : at + by];
if (row) row.focus();
}
e.preventDefault();
});
function print(starts) {
printing = starts;
document.documentElement.style.colorScheme = starts ? 'light' : '';  // for the lanes, too
drawLanes();
drawList();
}
addEventListener('beforeprint', () => print(true));
addEventListener('afterprint', () => print(false));
addEventListener('resize', drawLanes);
matchMedia('(prefers-color-scheme: dark)').onchange = drawLanes;
const hosts = tally(items, (i) => [textOf(i.r.host)]);
$('span').textContent = items.length
? `${stamp(begin)} to ${stamp(end)} UTC, ${count(agents.length)} agent` +
`${agents.length > 1 ? 's' : ''} on ${plain(hosts.slice(0, 5).map(([h]) => h).join(', '))}` +
(hosts.length > 5 ? ` and ${count(hosts.length - 5)} more` : '')
: 'There are no records.';
if (summary.left_out)
$('span').append(`; the first ${count(summary.left_out)} lines are left out`);
$('chain').append(...visible(summary.chains.join('; ')));
$('findings').hidden = !summary.findings;
$('findings').append(make('pre', {tabindex: 0}, ...visible(summary.findings)));
$('made').textContent = `Made by codeexec-mcp ${summary.version}, ${summary.made}.`;
show();
</script>
</body>
</html>
)page";

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
