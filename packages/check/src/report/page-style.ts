/** The colours, figures and tables of the bench's report, and those of timelines. */
export const STYLE = `:root{color-scheme:light dark;--page:#f5f6f8;--card:#fff;--ink:#16202c;--soft:#5d6b7a;--line:#dde2e8;--good:#15803d;--bad:#b91c1c;--doubtful:#92600a}
@media(prefers-color-scheme:dark){:root{--page:#0e1319;--card:#171e27;--ink:#e6ebf1;--soft:#93a1b1;--line:#2a3441;--good:#4ade80;--bad:#f87171;--doubtful:#e8b44f}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1280px;padding:24px clamp(12px,3vw,32px) 64px;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
header{display:flex;gap:4px 14px;align-items:baseline;flex-wrap:wrap}header p{margin:0;overflow-wrap:anywhere}
h1{font-size:22px;margin:0}h2{font-size:18px;margin:40px 0 12px}h2 small{display:inline;font-size:14px;margin-left:6px}
p{margin:4px 0 12px}p,small,dt,summary{color:var(--soft)}small{display:block;font-size:12px;font-weight:400}
code{font:.9em ui-monospace,SFMono-Regular,Menlo,monospace}summary{padding:6px 0;cursor:pointer}
.verdict{margin:20px 0 12px;padding:14px 18px;border:1px solid var(--line);border-left:5px solid;border-radius:10px;background:var(--card)}
.verdict b{font-size:20px;line-height:1.3}.verdict small{font-size:14px}
dd{margin:0;overflow-wrap:anywhere}.facts dd{text-align:right}
.figures{display:flex;flex-wrap:wrap;gap:12px;margin:0}
.figures div{flex:1 1 140px;display:flex;flex-direction:column;padding:14px 18px;border:1px solid var(--line);border-radius:10px;background:var(--card)}
.figures dd{order:-1;font-size:22px;font-weight:650;line-height:1.25;font-variant-numeric:tabular-nums}.figures dt{font-size:13px}
figure,pre,.wide{margin:0 0 12px;padding:12px;overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:10px}
figcaption{font-weight:600;font-size:14px;margin-bottom:8px}figcaption code{margin-right:6px}figcaption small{font-size:13px;overflow-wrap:anywhere}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:13px;max-height:420px;overflow-y:auto}
ol{margin:0 0 8px;padding-left:24px;font-size:14px;columns:2 360px}
table.data{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;width:100%}
.data th,.data td{padding:6px 10px;text-align:right;border-bottom:1px solid var(--line);vertical-align:top}
.data tr:last-child>*{border-bottom:0}.data thead th{color:var(--soft);font-weight:600}
.data th:first-child{text-align:left;white-space:nowrap}.data :nth-child(2){text-align:left}
.good{color:var(--good)}.bad{color:var(--bad)}td.bad,td.good{font-weight:650}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,420px),1fr));gap:2px 24px;font-size:14px;margin:0 0 12px}
.facts div{display:flex;gap:8px;justify-content:space-between;padding:3px 0;border-bottom:1px solid var(--line)}
.timeline svg{display:block;width:100%;min-width:760px;font:12px system-ui,sans-serif}
.timeline text{fill:var(--ink)}.timeline .name{font-weight:600}.timeline .time{fill:var(--soft);text-anchor:middle;font-size:11px}
.timeline .base{stroke:var(--line)}.timeline .tick{stroke:var(--line);stroke-dasharray:2 4}
.faint{opacity:.55}.timeline .faint .name{font-weight:400}
.link{opacity:.75}.n0{fill:#2a78d6}.n1{fill:#e06522}.n2{fill:#128a5e}.n3{fill:#7a6ad7}.n4{fill:#c9548a}.n5{fill:#8b8a84}
rect.fault{fill:color-mix(in srgb,var(--bad) 14%,var(--card));stroke:var(--bad);stroke-opacity:.55}
.timeline .fault-name{fill:var(--bad);font-size:11px}
rect.stall{fill:color-mix(in srgb,var(--doubtful) 22%,transparent);stroke:var(--doubtful);stroke-dasharray:3 3}
.publish path{stroke:var(--ink);stroke-width:1.6}.unsettled path{stroke:var(--doubtful);stroke-width:1.6;stroke-dasharray:2.5 2}
.publish.focus path,.unsettled.focus path{stroke:var(--bad);stroke-width:3}
.delivery circle{fill:var(--good)}.replay circle{fill:var(--card);stroke:var(--good);stroke-width:1.6}
.gap path{fill:var(--doubtful)}.recovered path{fill:#2a78d6}
.missed circle{fill:color-mix(in srgb,var(--bad) 15%,var(--card));stroke:var(--bad);stroke-width:2.2;stroke-dasharray:3 2}.wrong path{stroke:var(--bad);stroke-width:2.4;fill:none}
line.way{stroke:var(--soft);stroke-opacity:.28}line.missed{stroke:var(--bad);stroke-width:1.8;stroke-dasharray:6 4}
.timeline .label{font-weight:650;font-size:12px}.timeline .label.bad{fill:var(--bad)}
.legend{display:flex;flex-wrap:wrap;gap:4px 18px;margin:8px 0 0;font-size:12px}.legend span{display:inline-flex;align-items:center;gap:5px}
.key{width:15px;height:15px}.legend i{width:18px;height:10px;border-radius:3px;border:1px solid var(--bad);background:color-mix(in srgb,var(--bad) 14%,var(--card))}
.legend i.stall{border:1px dashed var(--doubtful);background:color-mix(in srgb,var(--doubtful) 22%,transparent)}
@media(max-width:720px){.data th:first-child{white-space:normal;overflow-wrap:anywhere;min-width:84px}.data th,.data td{padding:6px 5px}}
`
