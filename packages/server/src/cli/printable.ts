/**
 * Makes text of others safe for a terminal: escapes control characters, which could rewrite what is on the screen, and
 * invisible ones, which could make two texts look alike.
 */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
}
