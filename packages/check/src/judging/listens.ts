import type { Knowledge } from './known.js'
import { type EventOf, ListenState } from './listen-state.js'
import { ListenerChecks } from './listener-checks.js'
import { isAfter, isSameEpoch, type Place, placeOf } from './place.js'
import type { AskedEvent, ListenerRecord } from './record.js'
import { examineStreams } from './streams.js'
import type { Report } from './violation.js'

/** What a listen waits for. */
interface Request {
  readonly asked: AskedEvent
  readonly askedAtMs: number
  /** When the first page was asked for. */
  readonly beganAtMs: number
  answer?: EventOf<'ok'>
  left: number
}

/** Follows a listener event by event. */
export function examineListener(record: ListenerRecord, knowledge: Knowledge, report: Report): void {
  new ListenerExamination(record, knowledge, report).run()
}

class ListenerExamination {
  readonly #record: ListenerRecord
  readonly #knowledge: Knowledge
  readonly #report: Report
  readonly #checks: ListenerChecks
  readonly #listens: readonly ListenState[]
  readonly #requests: (Request | undefined)[]
  /** The last live position of this connection. */
  #livePlace: Place | undefined
  #downSinceMs = 0

  constructor(record: ListenerRecord, knowledge: Knowledge, report: Report) {
    this.#record = record
    this.#knowledge = knowledge
    this.#report = report
    this.#checks = new ListenerChecks(record, knowledge, report)
    this.#listens = record.patterns.map((pattern) => new ListenState(pattern, record.name, knowledge, report))
    this.#requests = record.patterns.map(() => undefined)
  }

  run(): void {
    for (const [index, event] of this.#record.events.entries()) {
      // Then the actors stop, and what is live is so no longer.
      if (event.atMs >= this.#knowledge.record.endedAtMs) break
      switch (event.what) {
        case 'asked':
          this.#asked(event, index)
          break
        case 'ok':
          this.#answered(event, index)
          break
        case 'message':
          if (event.listen === undefined) this.#live(event, index)
          else this.#replayed(event, event.listen, index)
          break
        case 'gap':
          this.#gap(event, index)
          break
        case 'pong':
          this.#mark(placeOf(event.position), event.atMs, 'pong')
          break
        case 'refused':
          this.#refused(event)
          break
        case 'ended':
          this.#ended(event.atMs)
      }
    }
    this.#finish()
  }

  #asked(event: EventOf<'asked'>, index: number): void {
    const { listen: number, isPage, atMs, since } = event
    const listen = this.#listens[number]
    if (listen === undefined) return
    const before = this.#requests[number]
    this.#requests[number] = {
      asked: event,
      askedAtMs: atMs,
      beganAtMs: isPage && before !== undefined ? before.beganAtMs : atMs,
      left: 0,
    }
    if (isPage) return
    const place = placeOf(since)
    listen.place = place
    if (place !== undefined) listen.begin(place)
    // Who does not say where to continue knows that something may be missing.
    else listen.gap(index, atMs)
  }

  #answered(event: EventOf<'ok'>, index: number): void {
    const [listen, request] = [this.#listens[event.listen], this.#requests[event.listen]]
    if (listen === undefined || request === undefined) return
    request.answer = event
    request.left = event.replayed
    const since = placeOf(request.asked.since)
    const position = placeOf(event.position)
    const { gap, isRecovered, atMs } = event
    if (request.asked.since !== undefined && isRecovered === (gap !== undefined)) {
      this.#violate('neither-recovered-nor-gap', atMs, `${listen.pattern} since ${request.asked.since}`)
    }
    if (isRecovered && since !== undefined) this.#recovered(listen, since, event)
    if (since !== undefined && position !== undefined && isAfter(since, position)) {
      this.#violate('position-falls', atMs, `${listen.pattern}: ok at ${event.position} since ${request.asked.since}`)
    }
    if (gap !== undefined) {
      this.#checks.expectTrue(listen.pattern, gap, event, request.asked)
      listen.gap(index, atMs)
    }
    if (request.left === 0) this.#complete(event.listen, atMs)
  }

  #recovered({ pattern }: ListenState, since: Place, { atMs, position }: EventOf<'ok'>): void {
    const epoch = placeOf(position)?.epoch
    if (epoch !== since.epoch) this.#violate('recovered-untrue', atMs, `${pattern}: ${since.epoch} became ${position}`)
    else if (!this.#knowledge.isCovered(pattern)) {
      this.#violate('recovered-untrue', atMs, `${pattern} has keys that are not logged`)
    }
  }

  #replayed(event: EventOf<'message'>, number: number, index: number): void {
    const [listen, request] = [this.#listens[number], this.#requests[number]]
    if (listen === undefined || request === undefined) return
    const { key, position, atMs, id } = event
    listen.given(index, true)
    this.#checks.expectKnown(event, atMs)
    if (!listen.matches(key)) this.#violate('wrong-key', atMs, `${listen.pattern} was replayed ${id} of ${key}`)
    if (--request.left < 0) {
      this.#violate('replayed-untrue', atMs, `${listen.pattern}: ${id} comes after all that were announced`)
    }
    const place = placeOf(position)
    const since = placeOf(request.asked.since)
    if (place === undefined) {
      this.#violate('position-missing', atMs, `${listen.pattern} was replayed ${id} at ${position}`)
    } else if (since !== undefined && isSameEpoch(place, since) && !isAfter(place, since)) {
      this.#violate('before-since', atMs, `${listen.pattern}: ${id} at ${position} since ${request.asked.since}`)
    } else if (listen.place !== undefined && isSameEpoch(place, listen.place) && !isAfter(place, listen.place)) {
      listen.refuse(event, atMs)
    } else listen.accept(event, place, index, atMs)
    if (request.left === 0) this.#complete(number, atMs)
  }

  /** All replayed messages of a page have come. */
  #complete(number: number, atMs: number): void {
    const [listen, request] = [this.#listens[number], this.#requests[number]]
    if (listen === undefined || request?.answer === undefined) return
    const { position, isMore } = request.answer
    const place = placeOf(position)
    if (isMore && place === undefined) this.#violate('more-untrue', atMs, `${listen.pattern}: more without a position`)
    if (place !== undefined) {
      if (listen.place !== undefined && isAfter(listen.place, place)) {
        this.#violate('position-falls', atMs, `${listen.pattern}: ok at ${position} with later messages`)
      }
      listen.mark(place, atMs, `the end of the replay at ${position}`)
      // A beginning, or a gap after which nothing was left to replay.
      if (listen.isGapped) listen.begin(place)
      if (listen.place === undefined || !isAfter(listen.place, place)) listen.place = place
    }
    if (isMore) return
    const { beganAtMs } = request
    this.#requests[number] = undefined
    if (request.asked.since === undefined) listen.answeredAnew(atMs)
    listen.isLive = true
    listen.liveAtMs = atMs
    listen.begunAtMs = Math.min(listen.begunAtMs, atMs)
    this.#checks.expectEnd(listen, beganAtMs, atMs)
  }

  #live(event: EventOf<'message'>, index: number): void {
    const { key, id, position, atMs } = event
    const place = placeOf(position)
    this.#checks.expectKnown(event, atMs)
    if ((place !== undefined) !== this.#knowledge.isLogged(key)) {
      this.#violate('position-missing', atMs, `${id} of ${key} came at ${position}`)
    }
    if (place !== undefined) {
      if (this.#livePlace !== undefined && isSameEpoch(place, this.#livePlace) && !isAfter(place, this.#livePlace)) {
        this.#violate('live-falls', atMs, `${id} at ${position} after offset ${this.#livePlace.offset.toString(36)}`)
      }
      this.#livePlace = place
    }
    const matching = this.#listens.filter((listen) => listen.isLive && listen.matches(key))
    if (matching.length === 0) this.#violate('not-live-yet', atMs, `${id} of ${key} at ${position}`)
    const isNew = ({ place: own }: ListenState) => {
      return place === undefined || own === undefined || !isSameEpoch(place, own) || isAfter(place, own)
    }
    // The connection is sent it once: a listen that has had it in a replay ignores what another one needs.
    const isForOneOfThem = matching.some(isNew)
    for (const listen of matching) {
      listen.given(index, false)
      if (isNew(listen)) listen.accept(event, place, index, atMs)
      else if (!isForOneOfThem) listen.refuse(event, atMs)
    }
    this.#mark(place, atMs, id)
    this.#checks.expectSoon(event, matching)
  }

  /** What a live message at a place says to all listens that are live [P-8.7]. */
  #mark(place: Place | undefined, atMs: number, source: string): void {
    if (place === undefined) return
    for (const listen of this.#listens) if (listen.isLive) listen.mark(place, atMs, source)
  }

  #gap({ listen: number, reason, atMs }: EventOf<'gap'>, index: number): void {
    const listen = this.#listens[number]
    if (listen === undefined) return
    this.#checks.expectTrue(listen.pattern, reason, { atMs })
    listen.gap(index, atMs)
  }

  #refused({ listen: number, code, isRetryable, atMs }: EventOf<'refused'>): void {
    const pattern = this.#listens[number]?.pattern
    const since = this.#requests[number]?.asked.since
    // A log that was lost may end before the positions that it gave.
    const isLost = this.#knowledge.hadFault(atMs, ['broker-data'])
    if (code === 'E_POSITION_INVALID' && !isLost) this.#violate('position-refused', atMs, `${pattern} since ${since}`)
    else if (!isRetryable && code !== 'E_POSITION_INVALID') this.#violate('refused', atMs, `${pattern}: ${code}`)
    if (code === 'E_NODE_BEHIND' && since === undefined)
      this.#violate('refused', atMs, `${pattern}: ${code} without since`)
  }

  #ended(atMs: number): void {
    for (const [number, listen] of this.#listens.entries()) {
      const request = this.#requests[number]
      if (request !== undefined) this.#checks.expectEnd(listen, request.beganAtMs, atMs)
      this.#requests[number] = undefined
      listen.ended()
    }
    this.#livePlace = undefined
    this.#downSinceMs = atMs
  }

  #finish(): void {
    const { endedAtMs } = this.#knowledge.record
    const { deliverWithinMs, liveWithinMs } = this.#knowledge.rules
    for (const [number, listen] of this.#listens.entries()) {
      if (listen.isLive) {
        // What was known early enough before the end has had time to come.
        const entries = this.#knowledge.logs.get(listen.frontier?.epoch ?? '') ?? []
        const due = entries.findLast(({ knownAtMs }) => this.#checks.quietMs(knownAtMs, endedAtMs) > deliverWithinMs)
        const epoch = listen.frontier?.epoch
        if (due !== undefined && epoch !== undefined && !this.#checks.isStalled) {
          listen.mark({ epoch, offset: due.offset }, endedAtMs, 'the end of the run')
        }
      } else if (
        this.#checks.quietMs(this.#requests[number]?.beganAtMs ?? this.#downSinceMs, endedAtMs) > liveWithinMs
      ) {
        this.#violate('not-live', endedAtMs, listen.pattern)
      }
      this.#checks.expectGaps(listen)
      examineStreams(listen, this.#record, this.#knowledge, this.#report)
    }
  }

  #violate(rule: Parameters<Report>[0], atMs: number, text: string): void {
    this.#report(rule, atMs, this.#record.name, text)
  }
}
