import { describe, expect, it } from 'vitest'
import type { ClientMessage } from 'webmq-client/protocol'
import { Inbox } from './inbox.js'

const MAX_BYTES = 1_000

const listen = (pattern: string, range: object = { last: 1 }): ClientMessage => ({
  verb: 'listen',
  id: '1',
  pattern,
  ...range,
})
const history = (key: string): ClientMessage => ({ verb: 'history', id: '1', key })
const unlisten = (pattern: string): ClientMessage => ({ verb: 'unlisten', id: '1', pattern })
const auth: ClientMessage = { verb: 'auth', id: '1', token: 't' }
const publish = (key: string): ClientMessage => ({ verb: 'publish', key, echo: true, payload: '1' })

/** Messages of the key `logged` are logged. */
function inboxWith(...running: ClientMessage[]): Inbox {
  const inbox = new Inbox((key) => key === 'logged')
  for (const message of running) inbox.began(message)
  return inbox
}

function ended(inbox: Inbox, message: ClientMessage): ClientMessage[] {
  const released: ClientMessage[] = []
  inbox.ended(message, (next) => released.push(next.message))
  return released
}

describe('Inbox', () => {
  // What was published behind a token that was still being verified had the bytes of later messages. The native transport
  // lends a Buffer, whose `slice` copies nothing.
  it('keeps a payload though it was lent as a Buffer', () => {
    const inbox = inboxWith(auth)
    const lent = Buffer.from('first')
    expect(inbox.push({ verb: 'publish', key: 'a', echo: true, payload: lent }, true, MAX_BYTES)).toBe(true)
    lent.fill(0)
    expect(ended(inbox, auth)).toMatchObject([{ payload: new TextEncoder().encode('first') }])
    expect(inbox.isEmpty).toBe(true)
  })

  it.each([
    ['a token', auth],
    ['a listen without a replay', listen('a', {})],
  ])('holds everything behind %s', (_, first) => {
    const inbox = inboxWith(first)
    for (const later of [auth, listen('b'), history('b'), unlisten('b'), publish('b')])
      expect(inbox.holds(later)).toBe(true)
  })

  it('holds only what names the same pattern or key behind a replay', () => {
    const inbox = inboxWith(listen('a'), history('b'))
    for (const held of [listen('a'), listen('a', {}), unlisten('a'), history('a'), history('b'), listen('b')]) {
      expect(inbox.holds(held), JSON.stringify(held)).toBe(true)
    }
    for (const free of [auth, listen('a.*'), listen('c', {}), unlisten('c'), history('c'), publish('b')]) {
      expect(inbox.holds(free), JSON.stringify(free)).toBe(false)
    }
  })

  it('holds a publish that a listen would miss: one that is not logged, or behind a listen without a replay', () => {
    expect(inboxWith(listen('*')).holds(publish('logged'))).toBe(false)
    expect(inboxWith(listen('*')).holds(publish('other'))).toBe(true)
    const inbox = inboxWith(listen('logged'))
    inbox.push(listen('logged', {}), false, MAX_BYTES)
    expect(inbox.holds(publish('logged'))).toBe(true)
  })

  it('releases in order what nothing before it holds', () => {
    const [first, second] = [listen('a'), listen('b')]
    const inbox = inboxWith(first, second)
    const waiting = [publish('a'), publish('logged'), unlisten('a'), unlisten('b'), listen('a', {})]
    for (const message of waiting) {
      expect(inbox.holds(message)).toBe(true)
      inbox.push(message, false, MAX_BYTES)
    }
    expect(ended(inbox, second)).toEqual([unlisten('b')])
    expect(ended(inbox, first)).toEqual([publish('a'), publish('logged'), unlisten('a'), listen('a', {})])
    expect(inbox.isEmpty).toBe(true)
  })

  it('has room for a limited number of messages, bytes, and replays', () => {
    const inbox = inboxWith(auth)
    expect(
      inbox.push({ verb: 'publish', key: 'a', echo: true, payload: 'x'.repeat(MAX_BYTES + 1) }, false, MAX_BYTES),
    ).toBe(false)
    for (let count = 0; count < 1_024; count++) expect(inbox.push(unlisten('a'), false, MAX_BYTES)).toBe(true)
    expect(inbox.push(unlisten('a'), false, MAX_BYTES)).toBe(false)
    const replays = Array.from({ length: 128 }, (_, index) => history(`${index}`))
    expect(inboxWith(...replays).holds(history('more'))).toBe(true)
    expect(inboxWith(...replays.slice(1)).holds(history('more'))).toBe(false)
  })
})
