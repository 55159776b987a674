import { isPattern } from 'webmq-client/protocol'
import { choice, integer, list, text } from '../spec.js'
import { isForwardable, WEBHOOK_NOTICES, WEBHOOK_QUESTIONS } from '../webhook.js'
import { checkFileName, isHttpUrl, longEnough, MAX_TIMER_MS } from './checks.js'

const EVENTS: readonly string[] = [...WEBHOOK_QUESTIONS, ...WEBHOOK_NOTICES]

export const HOOKS_OPTIONS = {
  hooks: text({
    placeholder: 'file',
    check: checkFileName,
    help: 'JavaScript module whose functions decide about connections, listens, publishes and presence.',
    detail:
      'Relative to the working directory. Its default export is an object with functions; without one, its named exports count. In a program, `hooks` is that object. [hooks.md](hooks.md) describes the functions.',
  }),
  hookTimeoutMs: integer({
    range: [50, MAX_TIMER_MS],
    default: 5000,
    help: 'Time in which a hook answers; after it, the action is refused with `E_HOOK_FAILED`.',
  }),
  'webhook.url': text({
    flag: 'webhook',
    placeholder: 'url',
    check: (value) => (isHttpUrl(value) ? undefined : 'an http:// or https:// address'),
    help: 'Address that is asked about what clients do, and told what they did.',
    detail:
      'Plain `http://` to another machine needs `insecure`, because an attacker on the network could give the answers. [hooks.md](hooks.md#webhooks) describes requests and answers.',
  }),
  'webhook.events': list({
    placeholder: 'event',
    defaultText: '`connect`',
    check: (value) => (EVENTS.includes(value) ? undefined : `one of ${EVENTS.join(', ')}`),
    help: 'Requests that the webhook gets: questions (`connect`, `listen`, `publish`, `presence`) and notices (`connected`, `disconnected`, `published`, `occupancy`).',
    detail:
      'A question delays its client by one request, so ask only what you need. Notices are sent in batches, and nobody waits for them.',
  }),
  'webhook.secret': text({
    placeholder: 'secret',
    isSecret: true,
    reloadable: true,
    fromFile: 'file-flag',
    check: longEnough,
    help: 'Secret that signs the requests to the webhook, as Standard Webhooks describes.',
    detail: 'A secret that begins with `whsec_` is base64.',
  }),
  'webhook.headers': list({
    flag: 'webhook-header',
    placeholder: 'name',
    defaultText: '`cookie`, `authorization`',
    check: (value) =>
      isForwardable(value.toLowerCase())
        ? undefined
        : 'a header of the upgrade request, not one that belongs to HTTP itself',
    help: 'Headers of the upgrade request that `connect` passes on to the webhook.',
  }),
  'webhook.published': list({
    placeholder: 'pattern',
    defaultText: '`#`, all keys',
    check: (value) => (isPattern(value) ? undefined : 'a pattern, such as orders.#'),
    help: 'Patterns of the keys whose messages the event `published` tells.',
    detail: 'A webhook that takes fewer messages than are published loses the newest, and a metric counts them.',
  }),
  'webhook.occupancy': list({
    flag: 'occupancy',
    placeholder: 'pattern',
    defaultText: '`#`, all patterns',
    check: (value) => (isPattern(value) ? undefined : 'a pattern, such as chat.*'),
    help: 'Listens that the event `occupancy` tells: those with a key or pattern that one of these contains.',
    detail:
      'All nodes need the same: a node without it does not say what its clients listen with. [hooks.md](hooks.md#occupancy) describes the events.',
  }),
  'webhook.occupancyGraceMs': integer({
    flag: 'occupancy-grace',
    range: [0, MAX_TIMER_MS],
    default: 5000,
    help: 'Time without a listener after which the webhook is told that a pattern is vacated.',
  }),
  'webhook.occupancyMaxPatterns': integer({
    flag: 'occupancy-max-patterns',
    range: [1, 10_000_000],
    default: 100_000,
    help: 'Patterns that are watched for the event `occupancy`, per node; further ones are counted, and not told.',
  }),
  'webhook.timeoutMs': integer({
    range: [50, 60_000],
    default: 3000,
    help: 'Time in which the webhook answers.',
    detail: 'The client waits meanwhile. A later answer counts as none.',
  }),
  'webhook.failure': choice({
    choices: ['closed', 'open'],
    default: 'closed',
    help: 'While the webhook fails, `closed` refuses the actions that it decides about, and `open` goes on without it.',
    detail:
      'With `open`, a webhook that is silent or cannot be reached lets through what it would have refused; any answer still counts, and nobody connects unasked.',
  }),
  'webhook.concurrency': integer({
    range: [1, 10_000],
    default: 64,
    help: 'Requests to the webhook at the same time; others wait, at most 16 times as many.',
  }),
}
