import { type DedupeOptions, DedupeWindow } from '../../kernel/ports/dedupe-window.js'
import { type Answer, Answers, type AnswersContext } from './answers.js'
import {
  type Asked,
  type GroupMember,
  type GroupMessage,
  groupIdOf,
  type HandOverMessage,
  type RequestTicket,
} from './group-message.js'
import type { QueueGroup } from './known-groups.js'
import type { TaskMessageOf } from './task-message.js'

/** A task without a message id may be sent again for as long as a request waits. Its number is known for that time... */
const NUMBERS_WINDOW_MS = 300_000
/** ... but of no more tasks. */
const MAX_NUMBERS = 65_536

export interface OwnMembersContext extends AnswersContext {
  readonly dedupe: DedupeOptions
  readonly now: () => number
  readonly known: ReadonlyMap<string, QueueGroup>
  /** What a member gets; `undefined`: nothing. */
  readonly delivered: (message: GroupMessage) => GroupMessage | undefined
  /** Notes that a member has to reply to a node. */
  readonly ticketFor: (member: GroupMember, node: string, asked: Asked) => RequestTicket
  readonly forget: (ticketId: string) => void
  readonly report: (err: unknown, text: string) => void
}

/** Hands messages to members of this node, for this node and others, each once. */
export class OwnMembers {
  readonly #context: OwnMembersContext
  readonly #answers: Answers
  /** Message ids, each with a queue group. */
  readonly #ids: DedupeWindow
  /** Tasks without a message id: their nodes and numbers. */
  readonly #numbers = new DedupeWindow({ dedupeWindowMs: NUMBERS_WINDOW_MS, dedupeMaxIds: MAX_NUMBERS })
  readonly #hasIds: boolean
  handedCount = 0
  /** Messages that the hook `deliver` failed for. */
  failedCount = 0

  constructor(context: OwnMembersContext) {
    const { dedupe } = context
    this.#context = context
    this.#ids = new DedupeWindow(dedupe)
    this.#hasIds = dedupe.dedupeWindowMs > 0 && dedupe.dedupeMaxIds > 0
    this.#answers = new Answers(context)
  }

  /** A task of another node: it is answered. Never calls the broker from within this call. */
  receive(task: TaskMessageOf<'task'>, node: string): void {
    this.#answers.add(node, task.number, this.#answerTo(task, node))
  }

  /** Those who have handed over would do it again without an answer. */
  stop(): void {
    this.#answers.send()
  }

  #answerTo(task: TaskMessageOf<'task'>, node: string): Answer {
    const { now, known } = this.#context
    const { number, name, messageId, withinMs, term } = task
    // This node stood still, or was taken for gone, while the task was on its way: another node may have it.
    if (term !== undefined && term !== this.#context.term()) return 'late'
    const group = known.get(groupIdOf(name))
    if (group === undefined) return 'none'
    const numberId = messageId === undefined || !this.#hasIds ? `${node} ${number}` : undefined
    if (numberId !== undefined && this.#numbers.has(numberId, now())) return 'taken'
    const answer = this.take(group, task, node, withinMs === undefined ? undefined : { number, withinMs })
    if (answer === 'taken' && numberId !== undefined) this.#numbers.remember(numberId, undefined, now())
    return answer
  }

  /** Hands a message of a node to a member of this node, unless one has it already. */
  take(group: QueueGroup, message: HandOverMessage, from: string, asked: Asked | undefined): Answer {
    const { now, delivered, report } = this.#context
    const { messageId } = message
    if (group.members.length === 0) return 'none'
    const id = messageId === undefined ? undefined : `${messageId} ${group.id}`
    if (id !== undefined && this.#ids.has(id, now())) return 'taken'
    let answer: Answer = 'taken'
    try {
      const changed = delivered(message)
      if (changed !== undefined) answer = this.#give(group, changed, from, asked)
    } catch (error) {
      // A bug, or a hook that failed: the message must not go to another member, who would fail too.
      report(error, 'a message of a queue group could not be handed over')
      this.failedCount++
    }
    if (answer === 'taken' && id !== undefined) this.#ids.remember(id, undefined, now())
    return answer
  }

  #give(group: QueueGroup, message: GroupMessage, from: string, asked: Asked | undefined): Answer {
    const { ticketFor, forget } = this.#context
    for (let tries = group.members.length; tries > 0; tries--) {
      const member = group.nextMember()
      if (member === undefined) break
      const ticket = asked && ticketFor(member, from, asked)
      if (member.take(group.name, message, ticket)) {
        this.handedCount++
        return 'taken'
      }
      if (ticket !== undefined) forget(ticket.id)
    }
    return group.members.length > 0 ? 'full' : 'none'
  }
}
