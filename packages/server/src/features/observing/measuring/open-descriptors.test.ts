import { describe, expect, it } from 'vitest'
import { OpenDescriptors } from './open-descriptors.js'

describe('OpenDescriptors', () => {
  it('are not listed where the system counts them', async () => {
    // Symptom: a scrape blocked the event loop for 15 ms at 15,000 connections. Cause: it listed /proc/self/fd.
    const descriptors = new OpenDescriptors({ size: () => 15_025, list: () => Promise.reject(new Error('listed')) })
    expect(await descriptors.count()).toBe(15_025)
  })

  it('are listed at most twice a minute where it does not, without the one of the list', async () => {
    let listCount = 0
    const descriptors = new OpenDescriptors({ size: () => 0, list: async () => Array(++listCount + 10).fill('') })
    expect(await descriptors.count(0)).toBe(10)
    expect(await descriptors.count(29_999)).toBe(10)
    expect(await descriptors.count(30_000)).toBe(11)
    expect(listCount).toBe(2)
  })

  it('are unknown where the system tells nothing', async () => {
    const refused = () => Promise.reject(new Error('no access'))
    expect(await new OpenDescriptors({ size: () => undefined, list: refused }).count()).toBeUndefined()
    expect(await new OpenDescriptors({ size: () => 0, list: refused }).count()).toBeUndefined()
  })
})
