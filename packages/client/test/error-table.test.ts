import { describe, expect, it } from 'vitest'
import {
  CLOSE_CODES,
  closeCodeOf,
  ERRORS,
  type ErrorCode,
  type ErrorSpec,
  isErrorCode,
  isReconnectable,
  RETRYABLE,
} from '../src/protocol/index.js'
import { findSources, readSource, type SourceFile } from './source-files.js'

/** Codes that nothing raises yet, with the reason to keep them. */
const RESERVED: Readonly<Partial<Record<ErrorCode, string>>> = {}

const codes = Object.keys(ERRORS) as readonly ErrorCode[]
const codeText = /\bE_[A-Z][A-Z0-9_]*\b/g

/** Code without tests and shared test suites, which may use invented codes. */
const sources = findSources('.ts', '.rs').filter(
  ({ path }) => /\/(src|crates)\//.test(path) && !/\.test(-d)?\.ts$|\/tests?\/|\/conformance\//.test(path),
)

const TABLE = 'packages/client/src/protocol/errors.ts'

function codesIn({ text }: SourceFile): readonly string[] {
  return text.match(codeText) ?? []
}

interface Section {
  readonly code: string
  readonly message: string | undefined
  readonly facts: string | undefined
  readonly text: string
}

function sectionsOf({ text }: SourceFile): readonly Section[] {
  const [, ...parts] = text.split(/^### /m)
  return parts.map((part) => {
    const [code = '', ...lines] = part.split(/^## /m)[0]?.split('\n') ?? []
    return {
      code,
      message: lines.find((line) => line.startsWith('> '))?.slice(2),
      facts: lines.find((line) => line.startsWith('Acts: ')),
      text: lines.join('\n'),
    }
  })
}

function factsOf({ source, retryable, closeCode, status }: ErrorSpec): string {
  const facts = [`Acts: ${source}`, `retryable: ${retryable ? 'yes' : 'no'}`]
  if (closeCode !== undefined) facts.push(`close code: ${closeCode}`)
  if (status !== undefined) facts.push(`HTTP status: ${status}`)
  return facts.join(' · ')
}

/** Rows of the Markdown table that follows a heading or clause, as cells without backquotes. */
function tableAfter({ text }: SourceFile, mark: string): readonly (readonly string[])[] {
  const [, after = ''] = text.split(mark)
  const [table = ''] = /^\|.*\|$(\n\|.*\|$)*/m.exec(after) ?? []
  return table
    .split('\n')
    .slice(2)
    .map((row) =>
      row
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim().replaceAll('`', '')),
    )
}

describe('the error table', () => {
  it('knows every code that is named in TypeScript or Rust', () => {
    expect(sources.some(({ path }) => path.endsWith('.rs')) && sources.some(({ path }) => path.endsWith('.ts'))).toBe(
      true,
    )
    const unknown = sources.flatMap((file) =>
      codesIn(file)
        .filter((code) => !Object.hasOwn(ERRORS, code))
        .map((code) => `${file.path}: ${code}`),
    )
    expect(unknown).toEqual([])
  })

  it('has no unused code, unless it is reserved', () => {
    const named = new Set(sources.filter(({ path }) => path !== TABLE).flatMap(codesIn))
    expect(codes.filter((code) => !named.has(code))).toEqual(Object.keys(RESERVED))
  })

  it('marks an error with a close code as retryable exactly when clients reconnect after it', () => {
    for (const code of codes) {
      const closeCode = closeCodeOf(code)
      if (closeCode !== undefined) expect([code, isReconnectable(closeCode)]).toEqual([code, ERRORS[code].retryable])
    }
  })

  it('agrees with what clients have of it', () => {
    const rows = codes.filter(isErrorCode).map((code): [ErrorCode, ErrorSpec] => [code, ERRORS[code]])
    const closing = rows.flatMap(([code, { closeCode }]) => (closeCode === undefined ? [] : [[code, closeCode]]))
    expect(Object.entries(CLOSE_CODES)).toEqual(closing)
    const others = rows.filter(([, { closeCode }]) => closeCode === undefined)
    expect(others.length).toBeGreaterThan(10)
    for (const [code, { retryable }] of others) expect([code, RETRYABLE.test(code)]).toEqual([code, retryable])
  })

  it('has a close code only for errors that clients know', () => {
    const unknown = codes.filter((code) => !isErrorCode(code)).map((code): ErrorSpec => ERRORS[code])
    expect(unknown.filter(({ closeCode }) => closeCode !== undefined)).toEqual([])
  })

  it('has no close code twice', () => {
    const closeCodes = codes.map(closeCodeOf).filter((closeCode) => closeCode !== undefined)
    expect(new Set(closeCodes).size).toBe(closeCodes.length)
  })
})

describe('docs/errors.md', () => {
  const sections = sectionsOf(readSource('docs/errors.md'))

  it('has one section for each code, in the order of the table', () => {
    expect(sections.map(({ code }) => code)).toEqual(codes)
  })

  it.each(sections)('agrees with the table on $code', ({ code, message, facts, text }) => {
    const spec: ErrorSpec | undefined = ERRORS[code as ErrorCode]
    expect({ message, facts }).toEqual({ message: spec?.message, facts: spec && factsOf(spec) })
    expect(text).toMatch(/^- Cause: .+(\n {2}.+)*\n- Fix: .+$/m)
  })

  it('names no code that is not in the table', () => {
    expect(codesIn(readSource('docs/errors.md')).filter((code) => !Object.hasOwn(ERRORS, code))).toEqual([])
  })
})

describe('docs/protocol.md', () => {
  const protocol = readSource('docs/protocol.md')

  it('names no code that is not in the table', () => {
    expect(codesIn(protocol).filter((code) => !Object.hasOwn(ERRORS, code))).toEqual([])
  })

  it('has every close code of the table, and no other WebMQ code', () => {
    const rows = tableAfter(protocol, '**[P-10.2]**').flatMap(([closeCode, code]) =>
      code ? [`${closeCode} ${code}`] : [],
    )
    const expected = codes.flatMap((code) => (closeCodeOf(code) === undefined ? [] : [`${closeCodeOf(code)} ${code}`]))
    expect(rows.toSorted()).toEqual(expected.toSorted())
  })

  it('has every HTTP status of the table', () => {
    const rows = tableAfter(protocol, '**[P-1.4]**').map(([statuses = '', code]) => `${statuses.split(',')[0]} ${code}`)
    const expected = codes.flatMap((code) => {
      const { status }: ErrorSpec = ERRORS[code]
      return status === undefined ? [] : [`${status} ${code}`]
    })
    expect(rows.toSorted()).toEqual(expected.toSorted())
  })
})
