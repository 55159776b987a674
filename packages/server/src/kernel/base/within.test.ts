import { describe, expect, it } from 'vitest'
import { deferred } from './deferred.js'
import { within } from './within.js'

describe('within', () => {
  it('says whether the promise was fulfilled in time', async () => {
    const late = deferred()
    expect(await within(Promise.resolve('a'), 1_000)).toBe(true)
    expect(await within(late.promise, 1)).toBe(false)
  })

  it('rejects as the promise does', async () => {
    const failed = deferred()
    const waited = within(failed.promise, 1_000)
    failed.reject(new Error('no'))
    await expect(waited).rejects.toThrow('no')
  })
})
