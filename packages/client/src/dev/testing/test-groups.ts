import { withPayload } from '../../protocol/encode-field.js'
import { ERRORS, type ErrorCode } from '../../protocol/errors.js'
import { matches } from '../../protocol/matching.js'
import type { WirePayload } from '../../protocol/messages.js'
import { encodeReply, taskHeader } from '../../protocol/tasks.js'

/** A connection, as a member of queue groups. */
export interface TestMember {
  sendFrame(frame: string | Uint8Array): void
}

/** What names a queue group [P-16.1]. */
export interface GroupName {
  readonly group: string
  readonly pattern: string
  readonly isResponder: boolean
}

interface Group extends GroupName {
  /** The first one is next. */
  readonly members: TestMember[]
}

interface Request {
  readonly id: string
  readonly from: TestMember
  readonly responder: TestMember
}

/** Queue groups and requests of a test server [P-16]. Members take turns. */
export class TestGroups {
  readonly #groups: Group[] = []
  readonly #requests = new Map<string, Request>()
  #requestCount = 0

  /** Number of groups that a connection is in. */
  countOf(member: TestMember): number {
    return this.#groups.filter(({ members }) => members.includes(member)).length
  }

  join(name: GroupName, member: TestMember): void {
    let group = this.#find(name)
    if (!group) {
      group = { ...name, members: [] }
      this.#groups.push(group)
    }
    if (!group.members.includes(member)) group.members.push(member)
  }

  /** Returns whether the connection was a member. */
  leave(name: GroupName, member: TestMember): boolean {
    const members = this.#find(name)?.members ?? []
    const index = members.indexOf(member)
    if (index < 0) return false
    members.splice(index, 1)
    return true
  }

  /** Ends the memberships of a connection in groups of this pattern, and returns these. */
  revoke(pattern: string, member: TestMember): readonly GroupName[] {
    return this.#groups.filter((group) => group.pattern === pattern && this.leave(group, member))
  }

  /** A connection has ended: its requests get no reply, and those that it had are answered. */
  closed(member: TestMember): void {
    for (const group of this.#groups) this.leave(group, member)
    for (const [name, { id, from, responder }] of this.#requests) {
      if (responder !== member && from !== member) continue
      this.#requests.delete(name)
      const { message } = ERRORS.E_RESPONSE
      const payload = JSON.stringify({ code: 'E_RESPONSE', message })
      if (responder === member) from.sendFrame(encodeReply({ id, isError: true, payload }))
    }
  }

  /** Gives a message to one member of each group that it matches. */
  publish(key: string, payload: WirePayload): void {
    for (const { group, pattern, isResponder, members } of this.#groups) {
      if (isResponder || !matches(pattern, key)) continue
      nextOf(members)?.sendFrame(withPayload(taskHeader({ group, pattern, key }), payload))
    }
  }

  /** Gives a request to a responder, after `onTaken`. Returns the refusal, if nobody responds [P-16.6]. */
  request(
    from: TestMember,
    request: { readonly id: string; readonly key: string; readonly withinMs?: number; readonly payload: WirePayload },
    onTaken: () => void,
  ): ErrorCode | undefined {
    const { id, key, withinMs, payload } = request
    const groups = this.#groups.filter(
      ({ isResponder, pattern, members }) => isResponder && members.length > 0 && matches(pattern, key),
    )
    const [chosen] = groups.sort((a, b) => breadthOf(a.pattern) - breadthOf(b.pattern))
    const responder = chosen && nextOf(chosen.members)
    if (!responder) return 'E_NO_RESPONDERS'
    const name = `request-${++this.#requestCount}`
    this.#requests.set(name, { id, from, responder })
    onTaken()
    const { group, pattern } = chosen
    responder.sendFrame(
      withPayload(taskHeader({ group, pattern, key, request: name, withinMs: withinMs ?? 10_000 }), payload),
    )
    return undefined
  }

  /** Passes a reply to the connection that asked. Returns whether the reply was expected. */
  reply(
    responder: TestMember,
    { id: name, isError, payload }: { readonly id: string; readonly isError: boolean; readonly payload: WirePayload },
  ): boolean {
    const request = this.#requests.get(name)
    if (request?.responder !== responder) return false
    this.#requests.delete(name)
    request.from.sendFrame(encodeReply({ id: request.id, isError, payload }))
    return true
  }

  #find({ group, pattern, isResponder }: GroupName): Group | undefined {
    return this.#groups.find(
      (each) => each.group === group && each.pattern === pattern && each.isResponder === isResponder,
    )
  }
}

function nextOf(members: TestMember[]): TestMember | undefined {
  const next = members.shift()
  if (next) members.push(next)
  return next
}

/** The fewest `#`, then the fewest `*`, come first. */
function breadthOf(pattern: string): number {
  const words = pattern.split('.')
  return words.filter((word) => word === '#').length * 256 + words.filter((word) => word === '*').length
}
