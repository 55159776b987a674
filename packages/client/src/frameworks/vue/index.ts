export type * from '../stores/shown.js'
export { clientKey } from './client.js'
export * from './composables.js'
