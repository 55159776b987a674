import { contains } from '../../protocol/containment.js'
import type { ClientMessage } from '../../protocol/messages.js'

type TestAction = 'listen' | 'publish' | 'presence'

/** Whose a token is, and what it allows. */
export interface TestIdentity {
  readonly userId?: string
  /** As in the claim `webmq` of a token: what is allowed at the keys of these patterns. Default: everything. */
  readonly grants?: readonly { readonly keys: readonly string[]; readonly allow: readonly TestAction[] }[]
}

/** What verbs, and the operations of `presence`, need [P-5.7]. Others give something up. */
const ACTIONS: { readonly [verb: string]: TestAction } = {
  ...({ listen: 'listen', history: 'listen', read: 'listen', get: 'listen', watch: 'listen' } as const),
  ...({ publish: 'publish', request: 'publish', stream: 'publish', enter: 'presence' } as const),
}

/** What a message needs at its pattern or key. */
export function actionOf(message: ClientMessage): TestAction | undefined {
  return ACTIONS['op' in message ? message.op : message.verb]
}

/** Whether a token allows an action at all keys of a pattern. */
export function allows({ grants }: TestIdentity, action: TestAction, pattern: string): boolean {
  if (grants === undefined) return true
  return grants.some(({ keys, allow }) => allow.includes(action) && keys.some((granted) => contains(granted, pattern)))
}
