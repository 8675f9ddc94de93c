SELECT number, max_by(position, cosine, {n}) AS positions, max(cosine, {n}) AS cosines
FROM (
    SELECT number, position, array_inner_product(vector, query) AS cosine
    FROM children, asked
    {where}
)
GROUP BY number ORDER BY number
