import { describe, expect, it } from 'vitest'
import { findSources, readSource } from './source-files.js'

const protocol = readSource('docs/protocol.md')
const defined = [...protocol.text.matchAll(/^\*\*\[(P-\d+\.\d+)\]\*\*/gm)].map(([, clause = '']) => clause)

describe('the clauses of docs/protocol.md', () => {
  it('are numbered consecutively within each section', () => {
    const numbers = defined.map((clause) => clause.slice(2).split('.').map(Number))
    for (const [index, [section = 0, number]] of numbers.entries()) {
      const [previousSection, previousNumber = 0] = numbers[index - 1] ?? [0, 0]
      expect([section, number]).toEqual([section, section === previousSection ? previousNumber + 1 : 1])
    }
    expect(defined.length).toBeGreaterThan(40)
  })

  it('exist wherever they are cited', () => {
    const files = [protocol, readSource('docs/errors.md'), ...findSources('.ts', '.rs', '.mjs', '.md')]
    const broken = files.flatMap(({ path, text }) =>
      [...text.matchAll(/\[(P-\d+(?:\.\d+)?)\]/g)]
        .filter(([, clause = '']) => !defined.some((known) => known === clause || known.startsWith(`${clause}.`)))
        .map(([citation]) => `${path}: ${citation}`),
    )
    expect(broken).toEqual([])
  })
})
