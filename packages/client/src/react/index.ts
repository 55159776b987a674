'use client'
export type * from '../stores/shown.js'
export { useClient, WebMQProvider, type WebMQProviderProps } from './client.js'
export * from './hooks.js'
