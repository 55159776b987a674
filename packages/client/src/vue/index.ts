export type * from '../stores/shown.js'
export { clientKey, useClient } from './client.js'
export * from './composables.js'
