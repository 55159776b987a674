import type { OptionSpec } from '../spec.js'
import { longEnough } from './checks.js'

/** Who may use the HTTP API. */
export const API_OPTIONS = [
  {
    name: 'apiKeys',
    section: 'Security',
    flag: 'api-key',
    type: 'list',
    placeholder: 'key',
    isSecret: true,
    reloadable: true,
    fromFile: 'file-flag',
    takesText: true,
    defaultText: 'none',
    check: (value) => longEnough(value),
    help: 'Keys of the HTTP API; a request with one may do everything there.',
    detail:
      'Several keys let you replace one without an interruption. A file has one key per line. Prefer the file, because every user of the machine can see flags. `openssl rand -base64 32` creates a key. Without a key, nobody may list or end connections, or revoke tokens. [http-api.md](http-api.md) has the routes.',
  },
] as const satisfies readonly OptionSpec[]
