import { describe, expect, it } from 'vitest'
import { judge } from '../src/judging/judge.js'
import type { AttemptRecord, ListenerEvent, MessageRecord } from '../src/judging/record.js'
import type { Rules } from '../src/judging/rules.js'
import { HistoryBuilder, RULES } from './history-builder.js'

type Told = ListenerEvent extends infer E ? (E extends unknown ? Omit<E, 'atMs' | 'connection'> : never) : never

/** A client with one listen; what its user was given is written down by hand. */
class ClientHistory extends HistoryBuilder {
  readonly #events: ListenerEvent[] = []
  #connection = 0

  constructor(pattern: string) {
    super()
    this.record.listeners.push({ name: 'l', patterns: [pattern], isOfClient: true, events: this.#events })
    this.#connect()
    this.#note({ what: 'asked', listen: 0, isPage: false })
  }

  begins(position?: string): this {
    const rest = { isRecovered: false, gap: undefined, replayed: 0, isMore: false }
    return this.#note({ what: 'ok', listen: 0, position, ...rest })
  }

  given({ id, key, payloadBytes }: MessageRecord, position = '-', isReplay = false): this {
    return this.#note({ what: 'message', listen: 0, id, key, payloadBytes, position, isReplay })
  }

  gap(reason: string): this {
    return this.#note({ what: 'gap', listen: 0, reason })
  }

  leaves(): this {
    return this.#note({ what: 'left', listen: 0 })
  }

  cut(): this {
    this.#connect()
    return this
  }

  get rules(): string[] {
    return this.rulesWith(RULES)
  }

  rulesWith(rules: Rules): string[] {
    return judge(this.end(), rules).map(({ rule }) => rule)
  }

  #connect(): void {
    const { connections } = this.record
    this.#connection = connections.length
    const nothing = { requests: [], stalls: [], breaches: [] }
    connections.push({ number: this.#connection, owner: 'l', node: 'n', beganAtMs: this.step(), ...nothing })
  }

  #note(told: Told): this {
    this.#events.push({ atMs: this.step(), connection: this.#connection, ...told } as ListenerEvent)
    return this
  }
}

const CUT_LINK = { name: 'cut', fromMs: 0, untilMs: 1, touches: ['peer-links'] as const }

const messagesOf = (history: ClientHistory, key: string, count: number, isLogged = true) =>
  Array.from({ length: count }, (_, index) => history.publish(key, isLogged ? `e:${index + 1}.AAAAA` : undefined))

describe('the judge of what a client gives its user', () => {
  it('finds nothing where each message came once and in order, over a lost connection', () => {
    const history = new ClientHistory('a.#').begins('e:0.AAAAA')
    const [one, two, three] = messagesOf(history, 'a.x', 3) as [MessageRecord, MessageRecord, MessageRecord]
    history.given(one, 'e:1.AAAAA').cut().given(two, 'e:2.AAAAA').given(three, 'e:3.AAAAA')
    expect(history.rules).toEqual([])
  })

  it('finds what is missing between two messages, at the beginning, and at the end', () => {
    const between = new ClientHistory('a.#').begins('e:0.AAAAA')
    const [one, , three] = messagesOf(between, 'a.x', 3) as [MessageRecord, MessageRecord, MessageRecord]
    expect(between.given(one, 'e:1.AAAAA').given(three, 'e:3.AAAAA').rules).toContain('lost')

    const first = new ClientHistory('a.#').begins('e:0.AAAAA')
    const [, two] = messagesOf(first, 'a.x', 2) as [MessageRecord, MessageRecord]
    expect(first.given(two, 'e:2.AAAAA').rules).toContain('lost')

    const last = new ClientHistory('a.#').begins('e:0.AAAAA')
    const [only] = messagesOf(last, 'a.x', 2) as [MessageRecord, MessageRecord]
    expect(last.given(only, 'e:1.AAAAA').rules).toContain('lost')
  })

  it('takes a gap for an excuse, and holds its reason against what is known', () => {
    const told = new ClientHistory('#').begins()
    const [one, , three] = messagesOf(told, 'b', 3, false) as [MessageRecord, MessageRecord, MessageRecord]
    expect(told.given(one).cut().gap('no-history').given(three).rules).toEqual([])

    const untold = new ClientHistory('#').begins()
    const [first, , last] = messagesOf(untold, 'b', 3, false) as [MessageRecord, MessageRecord, MessageRecord]
    expect(untold.given(first).cut().given(last).rules).toEqual(['lost'])

    expect(new ClientHistory('a.#').begins('e:0.AAAAA').gap('no-history').rules).toEqual(['gap-untrue'])
    expect(new ClientHistory('a.#').begins('e:0.AAAAA').gap('history-expired').rules).toEqual(['gap-untrue'])
    expect(new ClientHistory('a.#').begins('e:0.AAAAA').gap('position-invalid').rules).toEqual(['position-refused'])
  })

  // Symptom: NATS, a stalled link from the broker to a node: two messages that others had before the gap were called lost.
  // Cause: the node sent again what nobody had confirmed; nodes dropped the copies of what they had had.
  it('takes what was in the air at a gap for second copies: they prove nothing, and may come behind later messages', () => {
    const copiesOf = (settledAtMs: (history: ClientHistory) => number) => {
      const history = new ClientHistory('#').begins()
      const messages = messagesOf(history, 'b', 3, false) as [MessageRecord, MessageRecord, MessageRecord]
      history.cut().gap('no-history')
      for (const { attempts } of messages) (attempts[0] as AttemptRecord).settledAtMs = settledAtMs(history)
      const [next] = messagesOf(history, 'b', 1, false) as [MessageRecord]
      return { history, messages, next }
    }
    const inTheAir = (history: ClientHistory) => history.nowMs + 10
    const missing = copiesOf(inTheAir)
    expect(missing.history.given(missing.messages[0]).given(missing.next).rules).toEqual([])

    const late = copiesOf(inTheAir)
    expect(late.history.given(late.messages[2]).given(late.messages[0]).given(late.next).rules).toEqual([])

    const answered = () => copiesOf((history) => history.nowMs - 2)
    const gone = answered()
    expect(gone.history.given(gone.messages[0]).given(gone.next).rules).toEqual(['lost', 'lost'])
    const inverted = answered()
    expect(inverted.history.given(inverted.messages[2]).given(inverted.messages[0]).rules).toContain('out-of-order')
  })

  it('tells what came again from what came too late', () => {
    const twice = new ClientHistory('a.#').begins('e:0.AAAAA')
    const [one, two] = messagesOf(twice, 'a.x', 2) as [MessageRecord, MessageRecord]
    twice.given(one, 'e:1.AAAAA').given(two, 'e:2.AAAAA').cut().given(two, 'e:2.AAAAA')
    expect(twice.rules).toEqual(['twice'])

    const late = new ClientHistory('a.#').begins('e:0.AAAAA')
    const [first, second] = messagesOf(late, 'a.x', 2) as [MessageRecord, MessageRecord]
    expect(late.given(second, 'e:2.AAAAA').given(first, 'e:1.AAAAA').rules).toContain('out-of-order')

    const unlogged = new ClientHistory('#').begins()
    const [only] = messagesOf(unlogged, 'b', 1, false) as [MessageRecord]
    expect(unlogged.given(only).given(only).rules).toEqual(['twice'])
  })

  // Symptom: mesh seed 503: what another node had published while both were cut off from each other was called lost. Cause:
  // the gap [P-8.2] stands before the replay, and the hole was in it.
  it('takes a gap for an excuse for what is missing in the replay that follows, and no further', () => {
    const replayed = (isReplay: boolean) => {
      const history = new ClientHistory('a.#').begins('e:0.AAAAA')
      const [one, , three] = Array.from({ length: 3 }, (_, index) => history.publish('a.x', `f:${index + 1}.AAAAA`))
      history.record.faults.push(CUT_LINK)
      history.cut().gap('broker-lost')
      history.given(one as MessageRecord, 'e:1.AAAAA', true).given(three as MessageRecord, 'e:2.AAAAA', isReplay)
      return history.rulesWith({ ...RULES, log: 'per-node' })
    }
    expect(replayed(true)).toEqual([])
    expect(replayed(false)).toEqual(['lost'])
  })

  it('finds what comes after the client has answered that a listen is ended, and owes it nothing', () => {
    const history = new ClientHistory('a.#').begins('e:0.AAAAA')
    const [one, two] = messagesOf(history, 'a.x', 2) as [MessageRecord, MessageRecord]
    expect(history.given(one, 'e:1.AAAAA').leaves().rules).toEqual([])
    expect(history.given(two, 'e:2.AAAAA').rules).toContain('not-live-yet')
  })

  it('finds keys that do not match, positions that are missing, and a listen that never began', () => {
    const history = new ClientHistory('a.x').begins('e:0.AAAAA')
    const [other] = messagesOf(history, 'a.y', 1) as [MessageRecord]
    expect(history.given(other, 'e:1.AAAAA').rules).toContain('wrong-key')

    const bare = new ClientHistory('a.#').begins('e:0.AAAAA')
    const [message] = messagesOf(bare, 'a.x', 1) as [MessageRecord]
    expect(bare.given(message).rules).toContain('position-missing')

    const silent = new ClientHistory('a.#')
    silent.step(60_000)
    expect(silent.rules).toEqual(['not-live'])
  })
})
