import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ClientMessage, matches } from 'webmq-client/protocol'
import { Inbox } from './inbox.js'

const MAX_BYTES = 1_048_576
const LONG = 'x'.repeat(10_000)

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
  inbox.ended(message)
  inbox.release(
    (next) => released.push(next.message),
    () => true,
  )
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

  // 127 such patterns and 1,023 such keys stopped the node for 40 s, because each key was matched with each pattern.
  it('looks only at the words before the first wildcard of a pattern', () => {
    for (const pattern of ['a.#', 'a.*.c', 'a.#.x', 'a.b', '#']) {
      expect(inboxWith(listen(pattern)).holds(publish('a.b')), pattern).toBe(true)
    }
    for (const pattern of ['a.b.c.#', 'a.b.c', 'a', 'ab.#', 'c.#']) {
      expect(inboxWith(listen(pattern)).holds(publish('a.b')), pattern).toBe(false)
    }
    expect(inboxWith(listen('a.#')).holds(publish('a'))).toBe(true)
  })

  it('keeps the order and handles everything, whatever arrives and whenever it ends', () => {
    const word = fc.constantFrom('a', 'b', 'logged')
    const key = fc.array(word, { minLength: 1, maxLength: 2 }).map((words) => words.join('.'))
    const patternWord = fc.constantFrom('a', 'b', 'logged', '*', '#')
    const pattern = fc.array(patternWord, { minLength: 1, maxLength: 3 }).map((words) => words.join('.'))
    const arriving = fc.oneof(
      pattern.map((text) => listen(text)),
      pattern.map((text) => listen(text, {})),
      pattern.map(unlisten),
      key.map(history),
      key.map(publish),
      fc.constant(auth).map((message) => ({ ...message })),
    )
    const ending = fc.nat({ max: 9 })
    fc.assert(
      fc.property(fc.array(fc.oneof(arriving, arriving, ending), { maxLength: 40 }), (steps) => {
        const inbox = inboxWith()
        const arrived: ClientMessage[] = []
        const begun = new Set<ClientMessage>()
        const running: ClientMessage[] = []
        const begin = (message: ClientMessage) => {
          for (const earlier of arrived.slice(0, arrived.indexOf(message))) {
            const isOver = begun.has(earlier) && !running.includes(earlier)
            if (!isOver) expect(mustKeepOrder(earlier, message, begun), JSON.stringify([earlier, message])).toBe(false)
          }
          begun.add(message)
          if (message.verb === 'publish' || message.verb === 'unlisten') return
          running.push(message)
          inbox.began(message)
        }
        const end = (index: number) => {
          const [message] = running.splice(index % running.length, 1)
          if (message === undefined) return
          inbox.ended(message)
          // Turns end at any message; the rest is released in a later one.
          let left = index
          const mayGoOn = () => left-- > 0
          do {
            inbox.release((next) => begin(next.message), mayGoOn)
            left = index + 1
          } while (inbox.isDue)
        }
        for (const step of steps) {
          if (typeof step === 'number') {
            end(step)
            continue
          }
          arrived.push(step)
          if (inbox.holds(step)) expect(inbox.push(step, false, MAX_BYTES)).toBe(true)
          else begin(step)
        }
        while (running.length > 0) end(0)
        expect(begun.size).toBe(arrived.length)
        expect(inbox.isEmpty).toBe(true)
      }),
      { numRuns: 2_000 },
    )
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

  // Symptom: the event loop stood still for over a second while one client read the log. Cause: each of the requests that
  // ended in one turn looked at all waiting ones.
  it('is due only after a request has ended or the turn was over, and costs a share per message that it holds', () => {
    const [first, second] = [listen('a'), listen('b')]
    const inbox = inboxWith(first, second)
    for (const key of ['a', 'a', 'c']) inbox.push(history(key), false, MAX_BYTES)
    expect(inbox.isDue).toBe(false)
    inbox.ended(second)
    expect(inbox.isDue).toBe(true)
    const released: ClientMessage[] = []
    const release = (mayGoOn: boolean) =>
      inbox.release(
        ({ message }) => void released.push(message),
        () => mayGoOn,
      )
    // One in progress, and the two that it holds. The release does not look at messages behind the end of the turn.
    expect([release(false), inbox.isDue]).toEqual([3 / 4, true])
    inbox.ended(first)
    expect([release(false), inbox.isDue]).toEqual([0, true])
    expect([release(true), inbox.isDue]).toEqual([3 / 4, false])
    expect(released).toEqual([history('a'), history('a'), history('c')])
  })

  // Symptom: a fifth of the processor went into looking at 1,000 requests that wait for one of 128 in progress.
  it('looks at none of those that wait, while as many replays as may be are in progress', () => {
    const running = Array.from({ length: 128 }, (_, index) => history(`r${index}`))
    const inbox = inboxWith(...running)
    for (let index = 0; index < 1_000; index++) inbox.push(history(`w${index}`), false, MAX_BYTES)
    const released: ClientMessage[] = []
    const release = () =>
      inbox.release(
        ({ message }) => {
          released.push(message)
          inbox.began(message)
        },
        () => true,
      )
    expect(release()).toBe(128 / 4)
    for (const one of running.slice(0, 2)) inbox.ended(one)
    expect(release()).toBe((128 + 2) / 4)
    expect(released).toEqual([history('w0'), history('w1')])
    // A publish may pass them.
    inbox.push(publish('logged'), false, MAX_BYTES)
    release()
    expect(released.at(-1)).toEqual(publish('logged'))
  })

  // Symptom: a connection kept 270 MB of presence messages. Cause: only payloads of publishes were counted.
  it.each<[string, (index: number) => ClientMessage]>([
    [
      'data of presence',
      (index) => ({ verb: 'presence', id: 'e', key: 'k', op: 'enter', member: `${index}`, data: LONG }),
    ],
    ['tokens', () => ({ verb: 'auth', id: 'a', token: LONG })],
    ['payloads', () => ({ verb: 'publish', key: 'k', echo: true, payload: LONG })],
    ['payloads of bytes', () => ({ verb: 'publish', key: 'k', echo: true, payload: Buffer.from(LONG) })],
    ['keys', () => history(LONG)],
  ])('counts all that it keeps: %s', (_, message) => {
    const inbox = inboxWith(auth)
    let count = 0
    while (count < 1_024 && inbox.push(message(count), false, MAX_BYTES)) count++
    expect(count).toBeGreaterThan(0)
    expect(count * LONG.length).toBeLessThanOrEqual(MAX_BYTES)
  })

  it('keeps small messages within its bytes too', () => {
    const maxBytes = 65_536
    const inbox = inboxWith(auth)
    let count = 0
    while (count < 1_024 && inbox.push(unlisten('a'), false, maxBytes)) count++
    // A small message takes more than 200 bytes.
    expect(count).toBeLessThan(maxBytes / 200)
    ended(inbox, auth)
    expect(inbox.isEmpty).toBe(true)
    expect(inbox.push(unlisten('a'), false, maxBytes), 'what was released counts no more').toBe(true)
  })

  it('holds all while one of several waits, and tells the one that asked of each message behind it', () => {
    const inbox = new Inbox(() => false)
    const told: number[] = []
    const behind = (byteCount: number) => {
      told.push(byteCount)
      return byteCount === Number.POSITIVE_INFINITY
    }
    inbox.shut()
    inbox.shut(behind)
    // A hook has decided; the broker still takes its time.
    inbox.open()
    expect(inbox.holds(auth)).toBe(true)
    expect(inbox.push(unlisten('a'), false, MAX_BYTES)).toBe(true)
    expect([told.length, inbox.isRefused]).toEqual([1, false])
    expect(inbox.push(unlisten('b'), false, 1)).toBe(false)
    expect([told[1], inbox.isRefused]).toEqual([Number.POSITIVE_INFINITY, true])
    inbox.open(behind)
    expect([inbox.isRefused, inbox.isDue]).toEqual([false, true])
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

/** The order rules of {@link Inbox}, for two messages of which the earlier one waits or is in progress. */
function mustKeepOrder(earlier: ClientMessage, later: ClientMessage, begun: ReadonlySet<ClientMessage>): boolean {
  const isReplay = earlier.verb === 'history' || (earlier.verb === 'listen' && 'last' in earlier)
  if (begun.has(earlier) && !isReplay) return true
  if (earlier.verb === 'auth') return true
  if (later.verb === 'publish') {
    if (earlier.verb === 'publish') return true
    return earlier.verb === 'listen' && matches(earlier.pattern, later.key) && !(isReplay && later.key === 'logged')
  }
  const name = nameOf(later)
  return name !== undefined && name === nameOf(earlier)
}

function nameOf(message: ClientMessage): string | undefined {
  return 'pattern' in message ? message.pattern : message.verb === 'history' ? message.key : undefined
}
