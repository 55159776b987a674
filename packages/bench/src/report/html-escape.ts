const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/**
 * Text as HTML or SVG, in an element or in a quoted attribute. Control characters, which neither can hold, become `�`.
 */
export function escapeHtml(text: string): string {
  return (
    text
      .replaceAll(/[&<>"']/g, (char) => ENTITIES[char] ?? '')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression searches for them
      .replaceAll(/[\0-\x08\x0B\x0C\x0E-\x1F\x7F]/g, '\uFFFD')
  )
}
