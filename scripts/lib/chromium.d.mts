import type { Browser } from 'playwright-core'

/** Starts the Chromium at a path. */
export function startChromium(executablePath: string): Promise<Browser>
