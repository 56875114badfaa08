export default async function generate({ loadModel }, { name, ids, options }) {
  const model = await loadModel(`/build/packages/${name}/model.json`, options);
  const { tokens } = await model.generate(ids, { maxTokens: 20 });
  const { info } = model;
  await model.close();
  return { tokens, info };
}
