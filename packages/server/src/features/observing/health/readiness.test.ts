import { describe, expect, it } from 'vitest'
import { describeTransport } from './readiness.js'

describe('describeTransport', () => {
  it('names the transport of the option', () => {
    expect(describeTransport({ name: 'uws', chosen: 'option' })).toBe('the uws transport runs, as the option says')
  })

  it('names the best one without more', () => {
    expect(describeTransport({ name: 'native', chosen: 'auto' })).toBe('the native transport runs')
  })

  it('says why it is another one, and what that costs', () => {
    const text = describeTransport({ name: 'ws', chosen: 'auto', reason: 'no engine was built; run: npm run build' })
    expect(text).toContain('the ws transport runs, because no engine was built; run: npm run build.')
    expect(text).toContain('fewer messages per core')
  })
})
