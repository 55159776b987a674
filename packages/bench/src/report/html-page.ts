import { escapeHtml } from './html-escape.js'
import { PAGE_STYLE } from './html-style.js'

/**
 * A whole page around its parts. It loads nothing and runs nothing: its content security policy forbids both to any
 * injected text.
 * @param title Plain text. @param parts HTML.
 */
export function htmlPage(title: string, parts: readonly string[]): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escapeHtml(title)}</title>
<style>
${PAGE_STYLE}
</style>
</head>
<body>
${parts.filter((part) => part !== '').join('\n')}
</body>
</html>
`
}
