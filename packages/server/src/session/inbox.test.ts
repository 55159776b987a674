import { expect, it } from 'vitest'
import { Inbox } from './inbox.js'

// What was published behind a token that was still being verified had the bytes of later messages. The native transport
// lends a Buffer, whose `slice` copies nothing.
it('keeps a payload though it was lent as a Buffer', () => {
  const inbox = new Inbox(1_000)
  const lent = Buffer.from('first')
  expect(inbox.push({ verb: 'publish', key: 'a', echo: true, payload: lent }, true)).toBe(true)
  lent.fill(0)
  expect(inbox.shift()?.message).toMatchObject({ payload: new TextEncoder().encode('first') })
  expect(inbox.shift()).toBeUndefined()
})
