import { vi } from 'vitest'

/** `vi.waitFor` gives up after a second, which a busy machine takes for anything. There is no option for it. */
const WAIT_MS = 20_000 * Number(process.env.WEBMQ_TEST_PATIENCE ?? 1)

const { waitFor } = vi
const waitPatiently: typeof waitFor = (callback, options) =>
  waitFor(callback, typeof options === 'number' ? options : { timeout: WAIT_MS, ...options })

// Files of one worker share `vi`.
if (waitFor.name !== waitPatiently.name) vi.waitFor = waitPatiently
