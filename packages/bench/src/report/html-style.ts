/**
 * The style sheet of the pages. One column of figures on a phone, as many as fit elsewhere. The colours of both schemes
 * suit the common kinds of colour blindness, and every series also has a marker of its own.
 */
export const PAGE_STYLE = `
:root{color-scheme:light dark;--page:#f6f6f3;--card:#fff;--ink:#17170f;--soft:#5b5a55;--faint:#8b8a84;--line:#e3e2dc;
--good:#0a6b2d;--bad:#b3261e;--doubt:#8a5a00;--s0:#2a78d6;--s1:#e06522;--s2:#128a5e;--s3:#c78500;--s4:#4a3aa7;--s5:#d23f3e;--s6:#c9548a;--s7:#5b5a55}
@media(prefers-color-scheme:dark){:root{--page:#131312;--card:#1c1c1a;--ink:#f2f1ec;--soft:#bdbcb4;--faint:#8f8e87;--line:#34342f;
--good:#5fcf86;--bad:#ff8a80;--doubt:#e8b44f;--s0:#5b9ff0;--s1:#f08445;--s2:#35b583;--s3:#dba21f;--s4:#a79cf5;--s5:#ee7574;--s6:#e489b3;--s7:#b0afa7}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif;-webkit-text-size-adjust:100%}
header,main,footer{max-width:1400px;margin:0 auto;padding:0 16px}
header{padding-top:24px}
footer{padding-top:24px;padding-bottom:32px;color:var(--soft);font-size:13px}
h1{font-size:24px;line-height:1.25;margin:0 0 4px}
h2{font-size:18px;margin:36px 0 10px}
h3{font-size:15px;margin:20px 0 8px}
p{margin:0 0 8px;max-width:90ch}
nav{display:flex;flex-wrap:wrap;gap:4px 16px;font-size:14px}
a{color:var(--s0)}
small,.soft{color:var(--soft)}
small{font-size:12px;font-weight:400}
ul{margin:0 0 8px;padding-left:20px;max-width:90ch}
.card,figure{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px}
.good{color:var(--good)}.bad{color:var(--bad)}.doubtful{color:var(--doubt)}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,340px),1fr));gap:12px}
figure{margin:0}
figcaption{font-weight:600;font-size:14px;margin-bottom:6px;display:flex;flex-wrap:wrap;justify-content:space-between;gap:0 8px;align-items:baseline}
svg{display:block;width:100%;height:auto;overflow:visible}
.legend{position:sticky;top:0;z-index:2;display:flex;flex-wrap:wrap;gap:2px 16px;background:var(--page);padding:8px 0;font-size:13px;list-style:none;margin:0;max-width:none}
.legend li{display:flex;align-items:center;gap:6px}
.legend svg{width:26px;height:12px;flex:none}
svg text{font:12px system-ui,sans-serif;fill:var(--soft)}
svg text.value{fill:var(--ink);font-variant-numeric:tabular-nums}
.band{fill:var(--ink);opacity:.07}.timeline text{paint-order:stroke;stroke:var(--card);stroke-width:3}
.grid{stroke:var(--line)}.axis{stroke:var(--faint);fill:none}
.line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}.line.dense{stroke-width:1.25;opacity:.85}
.mark{fill:currentColor;stroke:var(--card);stroke-width:1}.mark.doubt{fill:var(--card);stroke:currentColor;stroke-width:1.5}
.spread{stroke:currentColor;stroke-width:5;opacity:.3;fill:none}
.interval{stroke:currentColor;stroke-width:3;opacity:.6;stroke-linecap:round;fill:none}
.bar{fill:currentColor;stroke:currentColor}.bar.doubt{fill:var(--card);stroke-dasharray:4 2}.spread.ends{stroke:var(--ink);stroke-width:1.5;opacity:.7}
.s0{color:var(--s0)}.s1{color:var(--s1)}.s2{color:var(--s2)}.s3{color:var(--s3)}.s4{color:var(--s4)}.s5{color:var(--s5)}.s6{color:var(--s6)}.s7{color:var(--s7)}
.wide{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:8px}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;width:100%}
th,td{padding:6px 8px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line);vertical-align:top}
th{font-weight:600;color:var(--soft)}
thead th{white-space:normal;vertical-align:bottom}
tbody:last-child tr:last-child>*{border-bottom:0}
th.tier{background:var(--page);color:var(--soft)}
th.tier span{position:sticky;left:8px}
.text{text-align:left}
tbody th[scope=row]{position:sticky;left:0;background:var(--card);color:var(--ink);text-align:left;z-index:1}
td small{display:block;line-height:1.2}
td.why{white-space:normal;min-width:180px}
.best{font-weight:700}
pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;font:13px/1.5 ui-monospace,monospace}
dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,300px),1fr));gap:2px 24px;margin:0;font-size:14px}
dl div{display:flex;gap:8px;justify-content:space-between;border-bottom:1px solid var(--line);padding:4px 0}
dt{color:var(--soft)}dd{margin:0;text-align:right;overflow-wrap:anywhere;min-width:0}
summary{cursor:pointer;padding:6px 0;color:var(--soft)}
@media print{.legend{position:static}body{background:#fff}}
`.trim()
