import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const ROOT = new URL('../', import.meta.url)
/** `[label](../file "title of a test")`. */
const PROOF = /\]\(\.\.\/([^ )]+\.ts) "([^"]+)"\)/g

const text = readFileSync(new URL('docs/guarantees.md', ROOT), 'utf8')
/** The promises. Measurements follow them. */
const [promises = ''] = text.split('## On a seeded clock')
const lines = promises.split('\n')
const rows = lines.filter(
  (line, index) => line.startsWith('|') && !/^\| ---/.test(line) && !/^\| ---/.test(lines[index + 1] ?? ''),
)

describe('docs/guarantees.md', () => {
  it('has promises', () => expect(rows.length).toBeGreaterThan(20))

  it.each(rows)('names a test that exists: %s', (row) => {
    const proofs = [...row.matchAll(PROOF)]
    expect(proofs).not.toEqual([])
    for (const [, file = '', title = ''] of proofs) {
      const source = readFileSync(new URL(file, ROOT), 'utf8')
      expect(
        ["'", '`'].some((quote) => source.includes(quote + title)),
        `${file} has no test "${title}"`,
      ).toBe(true)
    }
  })
})
