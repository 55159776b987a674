import { expect, it } from 'vitest'
import { Captures } from './captures.js'

// A listen replayed the bytes of later messages. The native transport lends a Buffer, whose `slice` copies nothing.
it('keep what was delivered though it was lent as a Buffer', () => {
  const captures = new Captures()
  const capture = captures.start('a.*', 1_000)
  const lent = Buffer.from('first')
  captures.deliver({ key: 'a.b', payload: lent, isBinary: false })
  captures.deliver({ key: 'other', payload: lent, isBinary: false })
  lent.fill(0)
  expect(capture.messages).toEqual([{ key: 'a.b', payload: new TextEncoder().encode('first'), isBinary: false }])
})
