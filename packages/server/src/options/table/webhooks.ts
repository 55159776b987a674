import { isPattern } from 'webmq-client/protocol'
import { isForwardable, WEBHOOK_NOTICES, WEBHOOK_QUESTIONS } from '../../hooks/index.js'
import type { OptionSpec } from '../spec.js'
import { isHttpUrl, longEnough } from './checks.js'

const EVENTS: readonly string[] = [...WEBHOOK_QUESTIONS, ...WEBHOOK_NOTICES]

/** An address that decides about what clients do, and is told what they did. */
export const WEBHOOKS_OPTIONS = [
  {
    name: 'webhook.url',
    section: 'Hooks',
    flag: 'webhook',
    type: 'text',
    placeholder: 'url',
    check: (value) => (isHttpUrl(value) ? undefined : 'an http:// or https:// address'),
    help: 'Address that is asked about what clients do, and told what they did.',
    detail:
      'A backend in any language then decides who may connect, without tokens. Plain `http://` to another machine needs `insecure`, because an attacker on the network could give the answers. [hooks.md](hooks.md#webhooks) describes requests and answers.',
  },
  {
    name: 'webhook.events',
    section: 'Hooks',
    flag: 'webhook-events',
    type: 'list',
    placeholder: 'event',
    defaultText: '`connect`',
    check: (value) => (EVENTS.includes(value) ? undefined : `one of ${EVENTS.join(', ')}`),
    help: 'Requests that the webhook gets: questions (`connect`, `listen`, `publish`, `presence`) and notices (`connected`, `disconnected`, `published`).',
    detail:
      'A question delays its client by one request, so ask only what you need. Notices are sent in batches, and nobody waits for them.',
  },
  {
    name: 'webhook.secret',
    section: 'Hooks',
    flag: 'webhook-secret',
    type: 'text',
    placeholder: 'secret',
    isSecret: true,
    reloadable: true,
    fromFile: 'file-flag',
    check: longEnough,
    help: 'Secret that signs the requests to the webhook, as Standard Webhooks describes.',
    detail:
      'Without it, the webhook cannot tell the server from anyone else who finds its address. A secret that begins with `whsec_` is base64.',
  },
  {
    name: 'webhook.headers',
    section: 'Hooks',
    flag: 'webhook-header',
    type: 'list',
    placeholder: 'name',
    defaultText: '`cookie`, `authorization`',
    check: (value) =>
      isForwardable(value.toLowerCase())
        ? undefined
        : 'a header of the upgrade request, not one that belongs to HTTP itself',
    help: 'Headers of the upgrade request that `connect` passes on to the webhook.',
    detail:
      'So the session of your website counts. Others stay here, because a webhook should see no more than it needs.',
  },
  {
    name: 'webhook.published',
    section: 'Hooks',
    flag: 'webhook-published',
    type: 'list',
    placeholder: 'pattern',
    defaultText: '`#`, all keys',
    check: (value) => (isPattern(value) ? undefined : 'a pattern, such as orders.#'),
    help: 'Patterns of the keys whose messages the event `published` tells.',
    detail: 'A webhook that takes fewer messages than are published loses the newest, and a metric counts them.',
  },
  {
    name: 'webhook.timeoutMs',
    section: 'Hooks',
    flag: 'webhook-timeout',
    type: 'integer',
    unit: 'ms',
    min: 50,
    max: 60_000,
    default: 3000,
    help: 'Time in which the webhook answers.',
    detail: 'The client waits meanwhile. A later answer counts as none.',
  },
  {
    name: 'webhook.failure',
    section: 'Hooks',
    flag: 'webhook-failure',
    type: 'choice',
    choices: ['closed', 'open'],
    default: 'closed',
    help: 'While the webhook fails, `closed` refuses the actions that it decides about, and `open` goes on without it.',
    detail:
      'With `open`, an outage of the webhook lets through what it would have refused; a client that it must identify still gets no rights.',
  },
  {
    name: 'webhook.concurrency',
    section: 'Hooks',
    flag: 'webhook-concurrency',
    type: 'integer',
    min: 1,
    max: 10_000,
    default: 64,
    help: 'Requests to the webhook at the same time; others wait, at most 16 times as many.',
    detail: 'Otherwise a burst of reconnecting clients could open thousands of connections to your backend.',
  },
] as const satisfies readonly OptionSpec[]
