export type * from '../stores/shown.js'
export { provideClient } from './client.js'
export type { MaybeReadable } from './readable.js'
export * from './stores.js'
