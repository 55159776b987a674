import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { DEFAULT_COEFFICIENTS, readCoefficients } from './coefficients.js'
import { docSections, withSections } from './doc-sections.js'

describe('the generated parts of a text', () => {
  it('docs/scaling.md has what the model says; `node benchmark.js model --docs ../../docs/scaling.md` writes it anew', () => {
    const text = readFileSync(new URL('../../../../docs/scaling.md', import.meta.url), 'utf8')
    expect(withSections(text, docSections(readCoefficients(DEFAULT_COEFFICIENTS)))).toBe(text)
  })

  it('are between their marks, and nothing else changes', () => {
    const text = 'before\n<!-- model: one -->\nold\n<!-- /model -->\nafter\n'
    const written = withSections(text, new Map([['one', 'new']]))
    expect(written).toBe('before\n<!-- model: one -->\n\nnew\n\n<!-- /model -->\nafter\n')
    expect(withSections(written, new Map([['one', 'new']]))).toBe(written)
  })

  it('are refused when a mark is unknown or missing', () => {
    expect(() => withSections('<!-- model: two -->\n<!-- /model -->', new Map())).toThrow(/no generated part 'two'/)
    expect(() => withSections('', new Map([['one', 'new']]))).toThrow(/no marker of one/)
  })
})
