import { availableParallelism } from 'node:os'
import { isPattern } from 'webmq-client/protocol'
import { choice, integer, list, toggle } from '../spec.js'
import { MAX_URGENT_PATTERN_COUNT, MIB } from './checks.js'

export const ENGINE_OPTIONS = {
  transport: choice({
    choices: ['auto', 'native', 'ws', 'uws'],
    default: 'auto',
    help: 'Transport that handles the sockets: `native` (the Rust engine), `ws` (every platform), `uws` (uWebSockets.js) or `auto`.',
    detail:
      '`auto` takes `native` where it loads, otherwise `ws`; one line of the log and `/health` say which, and why. `ws` runs on the event loop and delivers several times fewer messages per core. `uws` is the package `webmq-transport-uws` and needs uWebSockets.js; the error message says how to install both.',
  }),
  threads: integer({
    range: [1, 256],
    default: () => Math.max(1, availableParallelism() - 1),
    defaultText: 'cores - 1, at least 1',
    help: 'I/O threads of the native transport.',
    detail: 'One core stays free for JavaScript.',
  }),
  flushIntervalMs: integer({
    range: [0, 1_000],
    default: 10,
    help: 'Time that a busy I/O thread may delay messages, so that several share one write; `0` disables it.',
    detail: 'For the native transport.',
  }),
  urgent: list({
    separator: ';',
    placeholder: 'pattern',
    check: (value) => (isPattern(value) ? undefined : 'a pattern, such as alarms.#'),
    help: 'Keys whose messages a busy I/O thread sends at once, without the delay of `flushIntervalMs`: `alarms.#`.',
    detail: `At most ${MAX_URGENT_PATTERN_COUNT} patterns. Each urgent message costs a write per receiver, so name keys with few messages ([figures](#what-urgent-keys-cost)). The option of the node that sends to the client counts, whatever node took the message. For the native transport; the others delay nothing. In one text, as in the environment variable, separate patterns with \`;\`.`,
  }),
  compression: toggle({
    help: 'Compress messages for clients that offer permessage-deflate (RFC 7692), as all browsers do.',
    detail:
      'Off by default: small messages hardly shrink, and every client pays for decompression. A message to many receivers is compressed once per process (`uws`: once per receiver). There is no context takeover, so connections need no extra memory and messages reveal nothing about each other. Leave it off if one message mixes a secret with text of other users, because its size then reveals the secret.',
  }),
  compressionThresholdBytes: integer({
    range: [0, 64 * MIB],
    default: 1024,
    help: 'Smallest message to compress, including its header.',
  }),
}
