import { RequestRefusal } from '../api/read-call.js'

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * The values of a JSON body, each in a line of its own: those of a list, or the one that is no list. What a value says is not
 * changed: numbers keep all their digits.
 * @throws {RequestRefusal} 400: no JSON.
 */
export function linesOf(body: Uint8Array): Buffer {
  let text: string
  try {
    text = utf8.decode(body)
    const value: unknown = JSON.parse(text)
    if (!Array.isArray(value)) return Buffer.from(`${lineOf(text)}\n`)
  } catch {
    throw new RequestRefusal('the body is no JSON', 400)
  }
  return Buffer.from(
    itemsOf(text)
      .map((item) => `${lineOf(item)}\n`)
      .join(''),
  )
}

/** A list with the values of these lines. */
export function listOf(lines: Buffer): string {
  return lines.length === 0 ? '[]' : `[${lines.toString('utf8', 0, lines.length - 1).replaceAll('\n', ',')}]`
}

/** Whether these are such lines. */
export function areLines(lines: Buffer): boolean {
  try {
    return linesOf(Buffer.from(listOf(lines))).equals(lines)
  } catch {
    return false
  }
}

/** A newline in valid JSON is one between its parts. */
function lineOf(text: string): string {
  return text.trim().replace(/[\r\n]+/g, ' ')
}

/** The texts of the items of a list, which is valid JSON. */
function itemsOf(text: string): string[] {
  const items: string[] = []
  let depth = 0
  let start = text.indexOf('[') + 1
  for (const { 0: part, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{},]/gs)) {
    if (part === '[' || part === '{') depth++
    else if (part === ']' || part === '}') depth--
    const isEnd = depth === 0 && part === ']'
    if (!isEnd && !(depth === 1 && part === ',')) continue
    items.push(text.slice(start, index))
    start = index + 1
  }
  return items.length === 1 && items[0]?.trim() === '' ? [] : items
}
