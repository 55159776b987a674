import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { UsageError } from '../exit-codes.js'
import { parseTarget, targetSpecs } from './target-table.js'

describe('a target', () => {
  it.each(targetSpecs.filter(({ program }) => program.endsWith('.mjs')))('$name has its script', ({ program }) => {
    expect(existsSync(new URL(`../../targets/${program}`, import.meta.url))).toBe(true)
  })

  it('may say how many I/O threads it has', () => {
    expect(parseTarget('uws')).toMatchObject({ label: 'uws', spec: { name: 'uws' } })
    expect(parseTarget('webmq-native:2')).toMatchObject({ label: 'webmq-native:2', threads: 2 })
  })

  it.each([
    ['nginx', /no target 'nginx'; there are webmq-native/],
    ['', /no target/],
    ['uws:2', /only webmq-native/],
    ['webmq-native:0', /1 to 64/],
    ['webmq-native:two', /1 to 64/],
    ['webmq-native:1:2', /no target/],
  ])('%j is refused', (label, message) => {
    expect(() => parseTarget(label)).toThrow(UsageError)
    expect(() => parseTarget(label)).toThrow(message)
  })
})
