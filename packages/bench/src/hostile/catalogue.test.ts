import { describe, expect, it } from 'vitest'
import { hostileCases } from './cases/index.js'

describe('the catalogue of hostile clients', () => {
  it('has names that can be typed, each once', () => {
    const names = hostileCases.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    for (const name of names) expect(name).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/)
  })

  it('says in a short sentence what each client does', () => {
    for (const { does } of hostileCases) expect(does).toMatch(/^[a-z].{10,110}[^.]$/)
  })
})
