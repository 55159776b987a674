import type { ConnectionContext } from '../../core/connection/context.js'
import { withAdvice } from './advice.js'
import { Refusals } from './refusals.js'

/** Watches a connection: why its upgrades are refused, and what its server says to a developer. */
export function watch(context: ConnectionContext): ConnectionContext {
  const refusals = new Refusals((lastError) => context.status({ lastError }))
  let token: string | undefined
  return {
    ...context,
    asked: (url, given) => {
      token = given
      refusals.asked(url)
    },
    failed: (error, failedAttempts) => refusals.failed(error, failedAttempts),
    up: (limits) => {
      refusals.reached()
      context.up(limits)
    },
    status: (changes) => {
      if (changes.state === 'closed') refusals.end()
      context.status(changes)
    },
    receive: (message) => context.receive('fields' in message ? message : withAdvice(message, token)),
  }
}
