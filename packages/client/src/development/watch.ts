import type { ConnectionContext } from '../connection/context.js'
import { Refusals } from './refusals.js'
import { withAdvice } from './told.js'

/** Watches a connection: why its upgrades are refused, and what its server says to a developer. */
export function watch(context: ConnectionContext): ConnectionContext {
  const refusals = new Refusals((lastError) => context.onStatus({ lastError }))
  let token: string | undefined
  return {
    ...context,
    onUpgrade: (url, given) => {
      token = given
      refusals.asked(url)
    },
    onFailure: (error, failedAttempts) => refusals.failed(error, failedAttempts),
    onLive: (limits) => {
      refusals.reached()
      context.onLive(limits)
    },
    onStatus: (changes) => {
      if (changes.state === 'closed') refusals.end()
      context.onStatus(changes)
    },
    onMessage: (message) => context.onMessage('fields' in message ? message : withAdvice(message, token)),
  }
}
