import type { OptionSpec } from '../spec.js'
import { checkFileName, MAX_TIMER_MS } from './checks.js'

/** Code of the application that decides about what clients do. */
export const HOOKS_OPTIONS = [
  {
    name: 'hooks',
    section: 'Hooks',
    flag: 'hooks',
    type: 'text',
    placeholder: 'file',
    check: checkFileName,
    help: 'JavaScript module whose functions decide about connections, listens, publishes and presence.',
    detail:
      'Relative to the working directory. Its default export is an object with functions; without one, its named exports count. In a program, `hooks` is that object. [hooks.md](hooks.md) describes the functions.',
  },
  {
    name: 'hookTimeoutMs',
    section: 'Hooks',
    flag: 'hook-timeout',
    type: 'integer',
    unit: 'ms',
    min: 50,
    max: MAX_TIMER_MS,
    default: 5000,
    help: 'Time in which a hook answers; after it, the action is refused with `E_HOOK_FAILED`.',
    detail:
      'Later messages of the connection wait for a hook, so one that hangs would otherwise block its client for ever.',
  },
] as const satisfies readonly OptionSpec[]
