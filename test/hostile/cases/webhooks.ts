import type { AttackCase } from '../attack-case.js'
import { FAILS, HANGS } from '../backend.js'
import { repeating } from './messages.js'

/** Publishes that a webhook is asked about, whose backend has a bug. */
export const webhookCases: readonly AttackCase[] = [
  {
    name: 'failing-webhook',
    does: 'publishes payloads with which the backend of the webhook answers 500',
    needs: 'webhook',
    fills: ['inbox', 'log'],
    attack: repeating((place) => `publish p${place % 1_000} evil.hook\n"${FAILS}"`),
  },
  {
    name: 'hanging-webhook',
    does: 'publishes payloads to which the backend of the webhook never answers',
    needs: 'webhook',
    fills: ['inbox', 'log'],
    attack: repeating((place) => `publish p${place % 1_000} evil.hook\n"${HANGS}"`),
  },
]
