import { expect, it } from 'vitest'
import { LiveBuffers } from './live-buffers.js'

// A listen replayed the bytes of later messages. The native transport lends a Buffer, whose `slice` copies nothing.
it('keep what was delivered though it was lent as a Buffer', () => {
  const buffers = new LiveBuffers()
  const buffer = buffers.start('a.*', 1_000)
  const lent = Buffer.from('first')
  buffers.deliver({ key: 'a.b', payload: lent, isBinary: false })
  buffers.deliver({ key: 'other', payload: lent, isBinary: false })
  lent.fill(0)
  expect(buffer.messages).toEqual([{ key: 'a.b', payload: new TextEncoder().encode('first'), isBinary: false }])
})
