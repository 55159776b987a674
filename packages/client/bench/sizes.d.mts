/** What a page with the core of the built client loads in Vite, and what each part adds to the core. */
export function clientSizes(): Promise<{ name: string; bytes: number }[]>

/** Bytes that three typed hooks add to an app: `one` by one, or `all` of them with `createHooks`. */
export function typedHookBytes(): Promise<{ readonly one: number; readonly all: number }>

/** Bytes that a page loads before it runs, by bundler. */
export function ownLoadedBytes(): Promise<Record<string, number>>
