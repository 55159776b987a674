const [QUOTE, BACKSLASH, LIST, OBJECT, LIST_END, OBJECT_END, COMMA] = Buffer.from('"\\[{]},')
const SPACE = 0x20

/**
 * JSON as its author wrote it. A number that is parsed and written again loses digits beyond 2^53, and a value that is nested
 * deeply overflows the stack of `JSON.stringify`; its text does neither.
 */
export class JsonText {
  readonly text: string

  /** @param text Valid JSON; nobody checks it again. */
  constructor(text: string) {
    this.text = text
  }

  /** On one line: between the tokens of JSON, a line end is white space. */
  static inLine(text: string): JsonText {
    return new JsonText(text.replaceAll(/[\r\n]/g, ' '))
  }
}

/**
 * Writes a value as JSON, with each {@link JsonText} in it as it is.
 * @param value Of this server's own making. What others have sent may be nested too deeply, so it is a `JsonText`.
 */
export function encodeWithTexts(value: unknown): string {
  if (value instanceof JsonText) return value.text
  if (Array.isArray(value)) return `[${value.map((item) => encodeWithTexts(item ?? null)).join(',')}]`
  if (!isPlain(value)) return JSON.stringify(value) ?? 'null'
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${encodeWithTexts(member)}`).join(',')}}`
}

/** Without the white space between its tokens. @param json It is valid JSON: somebody has parsed it. */
export function compactJson(json: string): string {
  return json.replaceAll(/"(?:[^"\\]|\\.)*"|\s+/g, (part) => (part.startsWith('"') ? part : ''))
}

/** An object whose members are its JSON. */
function isPlain(value: unknown): value is object {
  return value !== null && typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype
}

/**
 * The members of an object, in their order, each with the text of its value. A name that is there twice is twice in the list.
 * @param json An object. It is valid JSON: somebody has parsed it.
 */
export function membersOf(json: string): readonly (readonly [name: string, value: string])[] {
  const members: (readonly [string, string])[] = []
  let at = partAfter(json, json.indexOf('{'))
  while (json.charCodeAt(at) === QUOTE) {
    const nameEnd = endOfText(json, at)
    const start = partAfter(json, json.indexOf(':', nameEnd))
    const end = endOfValue(json, start)
    members.push([JSON.parse(json.slice(at, nameEnd)), json.slice(start, end)])
    const separator = partAfter(json, end - 1)
    if (json.charCodeAt(separator) !== COMMA) break
    at = partAfter(json, separator)
  }
  return members
}

/** The texts of the items of a list. @param json A list. It is valid JSON: somebody has parsed it. */
export function itemsOf(json: string): readonly string[] {
  const items: string[] = []
  let at = partAfter(json, json.indexOf('['))
  while (at < json.length && json.charCodeAt(at) !== LIST_END) {
    const end = endOfValue(json, at)
    items.push(json.slice(at, end))
    const separator = partAfter(json, end - 1)
    if (json.charCodeAt(separator) !== COMMA) break
    at = partAfter(json, separator)
  }
  return items
}

/** Index of the first character behind this one that is no white space. */
function partAfter(json: string, index: number): number {
  let at = index + 1
  while (json.charCodeAt(at) <= SPACE) at++
  return at
}

/** Index behind the text whose quote is at `start`. Cost: each character is looked at twice at most. */
function endOfText(json: string, start: number): number {
  let end = start
  for (;;) {
    end = json.indexOf('"', end + 1)
    // Nobody has parsed it: no loop goes on for that.
    if (end < 0) return json.length
    let escapeCount = 0
    while (json.charCodeAt(end - 1 - escapeCount) === BACKSLASH) escapeCount++
    if (escapeCount % 2 === 0) return end + 1
  }
}

/** Index behind the value that begins at `start`. Depth costs nothing: nothing calls itself. */
function endOfValue(json: string, start: number): number {
  let depth = 0
  for (let at = start; at < json.length; at++) {
    const code = json.charCodeAt(at)
    if (code === QUOTE) {
      at = endOfText(json, at) - 1
      if (depth === 0) return at + 1
    } else if (code === LIST || code === OBJECT) depth++
    else if (code === LIST_END || code === OBJECT_END) {
      // Below 0: behind a number or a word, the end of what it is in.
      if (--depth <= 0) return depth === 0 ? at + 1 : at
    } else if (depth === 0 && (code === COMMA || code <= SPACE)) return at
  }
  return json.length
}
