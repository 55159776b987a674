import fc from 'fast-check'
import { expect, it } from 'vitest'
import { TrackedListen } from '../src/actors/tracked-listen.js'
import { judge, type RuleName } from '../src/judging/judge.js'
import { isAfter, placeOf } from '../src/judging/place.js'
import type { ListenerEvent, MemberRecord, MessageRecord, RunRecord } from '../src/judging/record.js'
import { HistoryBuilder, type ListenerBuilder, RULES } from './history-builder.js'

const PATTERNS = ['a.x', 'a.*']
const KEYS = ['a.x', 'a.y', 'b.z']
const PAGE_COUNT = 3

/** What happens in a right history. */
type Step = 'cut' | 'resume' | 'pong' | { readonly key: string; readonly publisher: string }

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.record({ key: fc.constantFrom(...KEYS), publisher: fc.constantFrom('p', 'q') }) },
    { weight: 2, arbitrary: fc.constantFrom('cut' as const, 'resume' as const, 'pong' as const) },
  ),
  { minLength: 20, maxLength: 60 },
)

/** A client on a server that does everything right. */
class RightRun {
  readonly history = new HistoryBuilder()
  readonly #log: { readonly message: MessageRecord; readonly position: string }[] = []
  readonly #listener: ListenerBuilder = this.history.listener('l', ...PATTERNS, 'b.#')
  readonly #tracked = [...PATTERNS, 'b.#'].map((pattern) => new TrackedListen(pattern))
  readonly #members: MemberRecord[] = ['m', 'n'].map((name) => ({
    name,
    group: 'g',
    pattern: '#',
    memberships: [{ fromMs: 0, node: `node-${name}` }],
    tasks: [],
  }))
  #isConnected = false

  play(all: readonly Step[]): RunRecord {
    for (const member of this.#members) this.history.record.members.push(member)
    this.#resume()
    this.history.step(RULES.settleMs + 1)
    for (const step of all) {
      if (step === 'cut') this.#cut()
      else if (step === 'resume') this.#resume()
      else if (step === 'pong') this.#pong()
      else this.#publish(step.key, step.publisher)
    }
    this.#resume()
    this.#publish('a.x', 'p')
    return this.history.end()
  }

  get #end(): string {
    return `e:${this.#log.length.toString(36)}.AAAAB`
  }

  #publish(key: string, publisher: string): void {
    const isLogged = key.startsWith('a.')
    const message = this.history.publish(
      key,
      isLogged ? `e:${(this.#log.length + 1).toString(36)}.AAAAB` : undefined,
      publisher,
    )
    this.#members[message.sequence % 2]?.tasks.push({ atMs: this.history.nowMs, id: message.id, key })
    if (isLogged) this.#log.push({ message, position: `e:${(this.#log.length + 1).toString(36)}.AAAAB` })
    if (!this.#isConnected) return
    const position = isLogged ? this.#end : '-'
    this.#listener.live(message, position)
    for (const listen of this.#tracked) listen.received(key, position)
  }

  #cut(): void {
    if (!this.#isConnected) return
    this.#listener.cut()
    this.#isConnected = false
    for (const listen of this.#tracked) listen.isLive = false
  }

  #pong(): void {
    if (!this.#isConnected) return
    this.#listener.pong(this.#end)
    for (const listen of this.#tracked) listen.ponged(this.#end)
  }

  #resume(): void {
    if (this.#isConnected) return
    this.#isConnected = true
    for (const [number, listen] of this.#tracked.entries()) this.#replay(number, listen)
  }

  #replay(number: number, listen: TrackedListen): void {
    const isCovered = PATTERNS.includes(listen.pattern)
    for (let isPage = false; ; isPage = true) {
      const since = listen.position
      this.#listener.asked(since === undefined ? {} : { since }, number, isPage)
      const after = placeOf(since) ?? { epoch: 'e', offset: this.#log.length }
      const missed = this.#log.filter(({ message, position }) => {
        const place = placeOf(position)
        return place !== undefined && isAfter(place, after) && this.#listener.matching(message.key).includes(number)
      })
      const page = missed.slice(0, PAGE_COUNT)
      const isMore = missed.length > PAGE_COUNT
      const position = (isMore ? page.at(-1)?.position : undefined) ?? this.#end
      const says = since === undefined ? {} : isCovered ? { isRecovered: true } : { gap: 'no-history' }
      this.#listener.ok({ position, replayed: page.length, isMore, ...says }, number)
      for (const { message, position: at } of page) this.#listener.replayed(message, at, number)
      listen.completed(position, isMore)
      if (!isMore) return
    }
  }
}

/** Makes a right history wrong in one place; returns whether there was one. */
interface Mutation {
  readonly finds: readonly RuleName[]
  readonly apply: (
    record: RunRecord,
    events: ListenerEvent[],
    choose: <T>(from: readonly T[]) => T | undefined,
  ) => boolean
}

const isMessage = (event: ListenerEvent) => event.what === 'message'
const isLive = (event: ListenerEvent) => event.what === 'message' && event.listen === undefined
const indicesOf = (events: readonly ListenerEvent[], is: (event: ListenerEvent) => boolean) =>
  events.flatMap((event, index) => (is(event) ? [index] : []))

function change(event: ListenerEvent | undefined, by: object): boolean {
  if (event !== undefined) Object.assign(event, by)
  return event !== undefined
}

const MUTATIONS: Readonly<Record<string, Mutation>> = {
  'a live message is lost': {
    finds: ['lost'],
    apply: (_, events, choose) => {
      // Of what is not logged, a loss just before a disconnection cannot be told from one after it.
      const isLogged = (event: ListenerEvent) => event.what === 'message' && isLive(event) && event.position !== '-'
      const at = choose(indicesOf(events, isLogged))
      return at !== undefined && events.splice(at, 1).length > 0
    },
  },
  'a replayed message is lost': {
    finds: ['lost'],
    apply: (_, events, choose) => {
      const at = choose(indicesOf(events, (event) => isMessage(event) && !isLive(event)))
      if (at === undefined) return false
      const ok = events.slice(0, at).findLast(({ what }) => what === 'ok')
      if (ok?.what === 'ok') Object.assign(ok, { replayed: ok.replayed - 1 })
      return events.splice(at, 1).length > 0
    },
  },
  'a live message comes twice': {
    finds: ['twice'],
    apply: (_, events, choose) => {
      const at = choose(indicesOf(events, isLive))
      const event = events[at ?? -1]
      return at !== undefined && event !== undefined && events.splice(at, 0, { ...event }).length === 0
    },
  },
  'two live messages change places': {
    finds: ['live-falls'],
    apply: (_, events, choose) => {
      const isLogged = (index: number) => {
        const event = events[index]
        return event?.what === 'message' && isLive(event) && event.position !== '-'
      }
      const at = choose(indicesOf(events, isMessage).filter((index) => isLogged(index) && isLogged(index + 1)))
      const [one, other] = [events[at ?? -1], events[(at ?? -1) + 1]]
      if (at === undefined || one === undefined || other === undefined) return false
      events.splice(at, 2, { ...other, atMs: one.atMs }, { ...one, atMs: other.atMs })
      return true
    },
  },
  'an answer says neither': {
    finds: ['neither-recovered-nor-gap'],
    apply: (_, events, choose) => {
      const answers = events.filter((event) => event.what === 'ok' && (event.isRecovered || event.gap !== undefined))
      return change(choose(answers), { isRecovered: false, gap: undefined })
    },
  },
  'an answer claims another epoch': {
    finds: ['gap-untrue'],
    apply: (_, events, choose) => {
      const answers = events.filter((event) => event.what === 'ok' && event.isRecovered)
      return change(choose(answers), { isRecovered: false, gap: 'epoch-changed' })
    },
  },
  'an answer claims that the log has expired': {
    finds: ['gap-untrue'],
    apply: (_, events, choose) => {
      const answers = events.filter((event) => event.what === 'ok' && event.isRecovered)
      return change(choose(answers), { isRecovered: false, gap: 'history-expired' })
    },
  },
  'what is not logged is called recovered': {
    finds: ['recovered-untrue'],
    apply: (_, events, choose) => {
      const answers = events.filter((event) => event.what === 'ok' && event.gap === 'no-history')
      return change(choose(answers), { isRecovered: true, gap: undefined })
    },
  },
  'a message has the position of another': {
    finds: ['position-reused'],
    apply: (_, events, choose) => {
      const logged = events.filter((event) => event.what === 'message' && event.position !== '-')
      const [one, other] = [choose(logged), choose(logged)]
      if (one?.what !== 'message' || other?.what !== 'message' || one.id === other.id) return false
      return change(one, { position: other.position })
    },
  },
  'a message has another position than its publisher was told': {
    finds: ['position-moved'],
    apply: (_, events, choose) => {
      const logged = events.filter((event) => event.what === 'message' && event.position !== '-')
      return change(choose(logged), { position: 'e:zz.AAAAB' })
    },
  },
  'a message is of another epoch': {
    finds: ['epoch-unannounced'],
    apply: (_, events, choose) => {
      const logged = events.filter((event) => event.what === 'message' && event.position !== '-')
      return change(choose(logged), { position: 'f:1.AAAAB' })
    },
  },
  'a message has another key': {
    finds: ['wrong-key'],
    apply: (_, events, choose) => change(choose(events.filter(isMessage)), { key: 'a.other' }),
  },
  'a message has another payload': {
    finds: ['alien'],
    apply: (_, events, choose) => change(choose(events.filter(isMessage)), { payloadBytes: 1 }),
  },
  'an answer hides that there is more': {
    finds: ['lost'],
    apply: (_, events, choose) => {
      const at = choose(indicesOf(events, (event) => event.what === 'ok' && event.isMore))
      const ok = events[at ?? -1]
      if (at === undefined || ok?.what !== 'ok') return false
      const isOfPage = (event: ListenerEvent) => 'listen' in event && event.listen === ok.listen && event.what !== 'gap'
      const next = events.findIndex((event, index) => index > at && event.what === 'asked' && isOfPage(event))
      const end = events.findIndex(
        (event, index) => index > next && event.what === 'ok' && isOfPage(event) && !event.isMore,
      )
      const last = events[end]
      if (next < 0 || last?.what !== 'ok') return false
      events.splice(next, end + last.replayed - next + 1)
      return change(ok, { isMore: false, position: last.position })
    },
  },
  'a publish is called a duplicate': {
    finds: ['duplicate-untrue'],
    apply: ({ publishers }, _, choose) => {
      const attempt = choose(publishers.flatMap(({ messages }) => messages))?.attempts[0]
      if (attempt !== undefined) attempt.isDuplicate = true
      return attempt !== undefined
    },
  },
  'a message with noecho comes back': {
    finds: ['echoed'],
    apply: ({ publishers }, _, choose) => {
      const publisher = choose(publishers)
      const message = choose(publisher?.messages ?? [])
      if (publisher === undefined || message === undefined) return false
      publisher.messages.splice(publisher.messages.indexOf(message), 1, { ...message, isNoecho: true })
      return publisher.echoes.push({ connection: message.attempts[0]?.connection ?? 0, atMs: 0, id: message.id }) > 0
    },
  },
  'a task comes to no member': {
    finds: ['task-lost'],
    apply: ({ members: [member] }, _, choose) => {
      const task = choose(member?.tasks ?? [])
      return task !== undefined && (member?.tasks.splice(member.tasks.indexOf(task), 1).length ?? 0) > 0
    },
  },
  'a task comes to two members': {
    finds: ['task-twice'],
    apply: ({ members: [one, other] }, _, choose) => {
      const task = choose(one?.tasks ?? [])
      return task !== undefined && (other?.tasks.push(task) ?? 0) > 0
    },
  },
  'the ok of a publish has no position': {
    finds: ['position-missing'],
    apply: ({ publishers }, _, choose) => {
      const logged = publishers.flatMap(({ messages }) => messages.filter(({ key }) => key.startsWith('a.')))
      const attempt = choose(logged)?.attempts[0]
      if (attempt !== undefined) delete attempt.position
      return attempt !== undefined
    },
  },
}

it('finds nothing in right histories', () => {
  const isRight = fc.property(steps, (all) => {
    expect(judge(new RightRun().play(all), RULES)).toEqual([])
  })
  fc.assert(isRight)
})

it.each(Object.entries(MUTATIONS))('finds that %s', (_, { finds, apply }) => {
  const seeds = fc.array(fc.nat(), { minLength: 3, maxLength: 3 })
  const isFound = fc.property(steps, seeds, (all, chances) => {
    const record = new RightRun().play(all)
    const [listener] = record.listeners
    let at = 0
    const choose = <T>(from: readonly T[]): T | undefined =>
      from[(chances[at++ % chances.length] ?? 0) % (from.length || 1)]
    fc.pre(listener !== undefined && apply(record, listener.events, choose))
    expect(judge(record, RULES).map(({ rule }) => rule)).toEqual(expect.arrayContaining([...finds]))
  })
  fc.assert(isFound)
})
