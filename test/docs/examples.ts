import { readFileSync } from 'node:fs'

/** A fenced block of a page that a test runs. */
export interface DocsExample {
  /** Given by the comment before it: `<!-- run: name -->`. */
  readonly name: string
  /** The word after the fence: `sh`, `ts`, `json`. */
  readonly language: string
  readonly code: string
  /** Line of the fence, from 1. */
  readonly line: number
}

const FENCED = /^<!-- run: ([\w-]+) -->\n+(```+)(\w+)\n([\s\S]*?)\n\2$/gm

/**
 * The blocks of `docs/<page>` that a comment `<!-- run: name -->` precedes, in their order. With a language, only those.
 *
 * @throws {TypeError} When a name occurs twice, or a comment stands before no block: a test would run less than it seems.
 */
export function examplesOf(page: string, language?: string): readonly DocsExample[] {
  const text = readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8')
  const examples = [...text.matchAll(FENCED)].map((match): DocsExample => {
    const [, name = '', , language = '', code = ''] = match
    return { name, language, code, line: text.slice(0, match.index).split('\n').length + 1 }
  })
  const commentCount = text.match(/^<!-- run: /gm)?.length ?? 0
  if (commentCount !== examples.length) throw new TypeError(`${page}: a comment <!-- run: … --> has no block after it`)
  const twice = examples.find(({ name }, index) => examples.findIndex((other) => other.name === name) < index)
  if (twice !== undefined) throw new TypeError(`${page}: two examples are named ${twice.name}`)
  return language === undefined ? examples : examples.filter((example) => example.language === language)
}

/** One block by its name. @throws {TypeError} when the page has none. */
export function exampleOf(page: string, name: string): DocsExample {
  const found = examplesOf(page).find((example) => example.name === name)
  if (found === undefined) throw new TypeError(`${page} has no example ${name}`)
  return found
}
