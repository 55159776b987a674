import { type DedupeOptions, DedupeWindow } from '../../kernel/ports/dedupe-window.js'
import { type Answer, Answers, type AnswersContext } from './answers.js'
import { GivenMessages } from './given-messages.js'
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
  /** Notes that a member has to reply to a node; `undefined`: it has to reply to too many. */
  readonly ticketFor: (member: GroupMember, node: string, asked: Asked) => RequestTicket | undefined
  readonly forget: (ticketId: string) => void
  readonly report: (err: unknown, text: string) => void
}

/** Hands messages to members of this node, for this node and others, each once. */
export class OwnMembers {
  readonly #context: OwnMembersContext
  readonly #answers: Answers
  /** By message ids. */
  readonly #given: GivenMessages
  /** Tasks without a message id: their nodes and numbers. */
  readonly #numbers = new DedupeWindow({ dedupeWindowMs: NUMBERS_WINDOW_MS, dedupeMaxIds: MAX_NUMBERS })
  handedCount = 0
  /** Messages that the hook `deliver` failed for. */
  failedCount = 0

  constructor(context: OwnMembersContext) {
    this.#context = context
    this.#given = new GivenMessages(context.dedupe)
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
    const numberId = messageId === undefined || !this.#given.isOn ? `${node} ${number}` : undefined
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
    if (messageId !== undefined && this.#given.has(messageId, group.number, now())) return 'taken'
    let answer: Answer = 'taken'
    try {
      const changed = delivered(message)
      if (changed !== undefined) answer = this.#give(group, changed, from, asked)
    } catch (error) {
      // A bug, or a hook that failed: the message must not go to another member, who would fail too.
      report(error, 'a message of a queue group could not be handed over')
      this.failedCount++
    }
    if (answer === 'taken' && messageId !== undefined) this.#given.remember(messageId, group.number, now())
    return answer
  }

  #give(group: QueueGroup, message: GroupMessage, from: string, asked: Asked | undefined): Answer {
    const { ticketFor, forget } = this.#context
    const takes = (member: GroupMember): boolean => {
      const ticket = asked && ticketFor(member, from, asked)
      if (asked !== undefined && ticket === undefined) return false
      if (member.take(group.name, message, ticket)) return true
      if (ticket !== undefined) forget(ticket.id)
      return false
    }
    const first = group.nextMember()
    if (first === undefined) return 'none'
    // Each once: that all of them are asked in turn would cost the square of their number.
    if (!takes(first) && !group.members.some((member) => member !== first && takes(member))) return 'full'
    this.handedCount++
    return 'taken'
  }
}
