/** The panel's own style; its shadow root keeps that of the page out. */
export const STYLE = `
:host { all: initial; color-scheme: light dark; position: fixed; right: 8px; bottom: 8px; z-index: 2147483647; }
* { box-sizing: border-box; font: 12px/1.4 ui-monospace, Menlo, Consolas, monospace; color: light-dark(#16202c, #e6ebf1); }
details { background: light-dark(#ffffff, #171e27); border: 1px solid light-dark(#bcc4cd, #46535f); border-radius: 6px; box-shadow: 0 2px 12px #0004; }
summary { padding: 4px 10px; cursor: pointer; white-space: nowrap; }
summary::before { content: ''; display: inline-block; width: 8px; height: 8px; margin-right: 6px; border-radius: 50%; background: #c33; }
details[data-state=connected] > summary::before { background: #2a2; }
details[data-state=connecting] > summary::before, details[data-state=reconnecting] > summary::before { background: #d90; }
.body { width: min(620px, 90vw); max-height: 60vh; overflow: auto; padding: 0 10px 10px; }
h2 { margin: 10px 0 2px; font-weight: bold; }
button { margin: 0 4px 4px 0; padding: 2px 8px; border: 1px solid light-dark(#bcc4cd, #46535f); border-radius: 4px; background: light-dark(#f5f6f8, #0e1319); cursor: pointer; }
button[aria-pressed=true] { background: light-dark(#ffd9bd, #7c3a12); }
table { width: 100%; border-collapse: collapse; }
th, td { padding: 0 8px 0 0; text-align: left; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; max-width: 260px; }
th { color: light-dark(#5d6b7a, #93a1b1); font-weight: normal; }
`
