import type { Knowledge } from './known.js'
import { type EventOf, ListenState } from './listen-state.js'
import { ListenerChecks } from './listener-checks.js'
import { isAfter, isSameEpoch, type Place, placeOf } from './place.js'
import type { AskedEvent, ListenerRecord } from './record.js'
import { examineStreams } from './streams.js'
import type { Report } from './violation.js'

/** Follows what a client gives its user: each listen for itself, over all connections of the client. */
export function examineClientListener(record: ListenerRecord, knowledge: Knowledge, report: Report): void {
  new ClientExamination(record, knowledge, report).run()
}

interface Followed {
  readonly state: ListenState
  askedAtMs: number
  /** The last position that it was given. */
  position: string | undefined
  isOver: boolean
}

class ClientExamination {
  readonly #record: ListenerRecord
  readonly #knowledge: Knowledge
  readonly #report: Report
  readonly #checks: ListenerChecks
  readonly #listens: readonly Followed[]
  #connection = -1

  constructor(record: ListenerRecord, knowledge: Knowledge, report: Report) {
    this.#record = record
    this.#knowledge = knowledge
    this.#report = report
    this.#checks = new ListenerChecks(record, knowledge, report)
    this.#listens = record.patterns.map((pattern) => ({
      state: new ListenState(pattern, record.name, knowledge, report),
      askedAtMs: 0,
      position: undefined,
      isOver: false,
    }))
  }

  run(): void {
    for (const [index, event] of this.#record.events.entries()) {
      const followed = 'listen' in event && event.listen !== undefined ? this.#listens[event.listen] : undefined
      if (followed === undefined) continue
      if (event.connection !== this.#connection) this.#connected(event.connection)
      switch (event.what) {
        case 'asked':
          this.#asked(event, followed)
          break
        case 'ok':
          this.#began(event, followed)
          break
        case 'message':
          this.#given(event, followed, index)
          break
        case 'gap':
          this.#gap(event, followed, index)
          break
        case 'refused':
          followed.isOver = true
          this.#violate('refused', event.atMs, `${followed.state.pattern}: ${event.code}`)
          break
        case 'left':
          followed.isOver = true
      }
    }
    this.#finish()
  }

  /** What is not logged may come again on another connection, where it was published again. */
  #connected(connection: number): void {
    this.#connection = connection
    const { beganAtMs = 0 } = this.#knowledge.record.connections[connection] ?? {}
    const { liveWithinMs, deliverWithinMs } = this.#knowledge.rules
    for (const { state } of this.#listens) {
      const { isLive, begunAtMs } = state
      state.ended()
      state.isLive = isLive
      // Nobody sees when a client has listened again: it may take so long, and messages wait for it.
      if (isLive) state.liveAtMs = Math.max(begunAtMs, beganAtMs + liveWithinMs - deliverWithinMs)
    }
  }

  #asked({ since, atMs }: EventOf<'asked'>, followed: Followed): void {
    const place = placeOf(since)
    followed.askedAtMs = atMs
    followed.position = since
    if (place === undefined) return
    followed.state.place = place
    followed.state.begin(place)
  }

  #began({ position, atMs }: EventOf<'ok'>, followed: Followed): void {
    const { state } = followed
    const place = placeOf(position)
    // A client that has replayed messages to give says nothing: the first of them is where it begins.
    if (place !== undefined && state.frontier === undefined) {
      followed.position = position
      state.begin(place)
    }
    state.isLive = true
    state.begunAtMs = atMs
    state.liveAtMs = atMs
  }

  #given(event: EventOf<'message'>, followed: Followed, index: number): void {
    const { key, id, position, atMs } = event
    const { state } = followed
    const place = placeOf(position)
    state.given(index, event.isReplay === true)
    this.#checks.expectKnown(event, atMs)
    if (followed.isOver) this.#violate('not-live-yet', atMs, `${state.pattern}: ${id} after its end`)
    if (!state.matches(key)) this.#violate('wrong-key', atMs, `${state.pattern} was given ${id} of ${key}`)
    if ((place !== undefined) !== this.#knowledge.isLogged(key)) {
      this.#violate('position-missing', atMs, `${id} of ${key} came at ${position}`)
    }
    if (place === undefined || isNew(place, state.place)) state.accept(event, place, index, atMs)
    else state.refuse(event, atMs)
    if (place !== undefined) followed.position = position
    this.#checks.expectSoon(event, [state])
  }

  #gap({ reason, atMs, listen }: EventOf<'gap'>, { state, position }: Followed, index: number): void {
    state.gap(index, atMs)
    // What a client says when a server has called its position invalid: a log that was lost may end before it.
    if (reason === 'position-invalid') {
      if (!this.#knowledge.hadFault(atMs, ['broker-data'])) this.#violate('position-refused', atMs, `since ${position}`)
      return
    }
    // The user of a client that takes little at a time reads slowly.
    if (reason === 'slow-consumer') return
    const asked: AskedEvent | undefined =
      reason === 'history-expired'
        ? { what: 'asked', listen, isPage: false, ...(position === undefined ? {} : { since: position }) }
        : undefined
    this.#checks.expectTrue(state.pattern, reason, { atMs }, asked)
  }

  #finish(): void {
    const { endedAtMs } = this.#knowledge.record
    const { deliverWithinMs, liveWithinMs } = this.#knowledge.rules
    for (const { state, askedAtMs, isOver } of this.#listens) {
      if (isOver) continue
      if (!state.isLive) {
        if (this.#checks.quietMs(askedAtMs, endedAtMs) > liveWithinMs) {
          this.#violate('not-live', endedAtMs, state.pattern)
        }
        continue
      }
      const epoch = state.frontier?.epoch
      // What was known early enough before the end has had time to come.
      const due = this.#knowledge.logs
        .get(epoch ?? '')
        ?.findLast(({ knownAtMs }) => this.#checks.quietMs(knownAtMs, endedAtMs) > deliverWithinMs)
      if (due !== undefined && epoch !== undefined && !this.#checks.isStalled) {
        state.mark({ epoch, offset: due.offset }, endedAtMs, 'the end of the run')
      }
      this.#checks.expectGaps(state)
      examineStreams(state, this.#record, this.#knowledge, this.#report)
    }
  }

  #violate(rule: Parameters<Report>[0], atMs: number, text: string): void {
    this.#report(rule, atMs, this.#record.name, text)
  }
}

function isNew(place: Place, own: Place | undefined): boolean {
  return own === undefined || !isSameEpoch(place, own) || isAfter(place, own)
}
