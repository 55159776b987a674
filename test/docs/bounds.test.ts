import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { boundsPage } from '../../scripts/lib/bounds-page.mjs'
import { ROOT } from './blocks.js'

const page = readFileSync(`${ROOT}docs/bounds.md`, 'utf8')

describe('docs/bounds.md', () => {
  it('is what the constants of the sources say; `npm run docs:bounds` writes it anew', () => {
    expect(page).toBe(boundsPage())
  })

  it('has limits of every part, calculated', () => {
    expect(page).toContain('- dispatcher.ts: `MAX_WAITING_BYTES` 1 MiB')
    expect(page).toContain('- backpressure.rs: `MAX_POSTED_BYTES` 64 MiB')
    expect(page).toContain('`MAX_FLUSHED_COHORT_BYTES` 320 MiB')
    expect(page).toContain('`MAX_TOKEN_BYTES` 8 KiB')
    expect(page.match(/`(MAX|KEPT)_\w+`|`\w+_MAX_\w+`/g)?.length).toBeGreaterThan(100)
    expect(page).not.toMatch(/NaN|undefined|_MS`/)
  })
})
