import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const ROOT = new URL('../', import.meta.url)
/** The words that everything is named with; the table may explain others, too. */
const WORDS = [
  ...['key', 'pattern', 'payload', 'message', 'frame', 'connection', 'session', 'group', 'broker', 'transport', 'node'],
  ...['position', 'actor', 'stream', 'peer', 'queue group', 'term', 'drain'],
]

const [, section = ''] = readFileSync(new URL('ARCHITECTURE.md', ROOT), 'utf8').split('\n## Words\n')
const [table = ''] = section.split('\n## ')
const rows = [...table.matchAll(/^\| ([a-z ]+) \| (.+) \| `([^`]+)` \|$/gm)].map(
  ([, word = '', meaning = '', file = '']) => ({
    word,
    meaning,
    file,
  }),
)

describe('the words of ARCHITECTURE.md', () => {
  it('are 25, and each stands there once', () => {
    expect(rows).toHaveLength(25)
    expect(rows.map(({ word }) => word)).toEqual(expect.arrayContaining(WORDS))
    expect(new Set(rows.map(({ word }) => word)).size).toBe(rows.length)
    expect(table.match(/^\| [a-z]/gm)).toHaveLength(rows.length + 1)
  })

  it.each(rows)('$word is owned by a file that says it', ({ word, meaning, file }) => {
    expect(meaning.split(' ').length).toBeLessThan(21)
    expect(existsSync(new URL(file, ROOT)), file).toBe(true)
    expect(readFileSync(new URL(file, ROOT), 'utf8')).toMatch(new RegExp(`\\b${word.replace(' ', '[ -]?')}s?\\b`, 'i'))
  })
})
