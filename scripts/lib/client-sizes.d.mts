/** What a page with the core of the built client loads in Vite, and what each part adds to the core. */
export function clientSizes(): Promise<{ name: string; bytes: number }[]>

/** Bytes that a page loads before it runs, by bundler. */
export function ownLoadedBytes(): Promise<Record<string, number>>
